from .guarantee import OutputGuarantee as OutputGuarantee
