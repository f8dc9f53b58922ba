"""Released models as ONNX graphs: for programs without dpselect."""
