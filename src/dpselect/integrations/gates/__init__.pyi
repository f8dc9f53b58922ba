from .competitions import codabench_score as codabench_score, evalai_evaluate as evalai_evaluate
from .inspect_logs import inspect_outcomes as inspect_outcomes
from .mcp_server import gate_server as gate_server
from .metric import GateMetric as GateMetric
