from .design import Design as Design, search_design as search_design
