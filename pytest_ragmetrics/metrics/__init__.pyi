from pytest_ragmetrics.metrics.agents import AgentGoalAccuracy as AgentGoalAccuracy
from pytest_ragmetrics.metrics.agents import GoalReached as GoalReached
from pytest_ragmetrics.metrics.agents import TopicAdherence as TopicAdherence
from pytest_ragmetrics.metrics.answers import AnswerCorrectness as AnswerCorrectness
from pytest_ragmetrics.metrics.answers import AnswerRelevancy as AnswerRelevancy
from pytest_ragmetrics.metrics.answers import RefusalCorrectness as RefusalCorrectness
from pytest_ragmetrics.metrics.answers import ResponseRelevancy as ResponseRelevancy
from pytest_ragmetrics.metrics.answers import SemanticSimilarity as SemanticSimilarity
from pytest_ragmetrics.metrics.answers import SummarizationScore as SummarizationScore
from pytest_ragmetrics.metrics.answers import SummaryScore as SummaryScore
from pytest_ragmetrics.metrics.application import Cost as Cost
from pytest_ragmetrics.metrics.application import FirstToken as FirstToken
from pytest_ragmetrics.metrics.application import Latency as Latency
from pytest_ragmetrics.metrics.attribution import CitationPrecision as CitationPrecision
from pytest_ragmetrics.metrics.attribution import CitationRecall as CitationRecall
from pytest_ragmetrics.metrics.base import Metric as Metric
from pytest_ragmetrics.metrics.checks import Contains as Contains
from pytest_ragmetrics.metrics.checks import NoSecrets as NoSecrets
from pytest_ragmetrics.metrics.checks import ValidJSON as ValidJSON
from pytest_ragmetrics.metrics.citations import CitationValidity as CitationValidity
from pytest_ragmetrics.metrics.claims import FactualCorrectness as FactualCorrectness
from pytest_ragmetrics.metrics.claims import Faithfulness as Faithfulness
from pytest_ragmetrics.metrics.claims import Hallucination as Hallucination
from pytest_ragmetrics.metrics.claims import NoiseSensitivity as NoiseSensitivity
from pytest_ragmetrics.metrics.contexts import ContextEntityRecall as ContextEntityRecall
from pytest_ragmetrics.metrics.contexts import ContextPrecision as ContextPrecision
from pytest_ragmetrics.metrics.contexts import ContextRecall as ContextRecall
from pytest_ragmetrics.metrics.contexts import ContextRelevancy as ContextRelevancy
from pytest_ragmetrics.metrics.contexts import ContextUtilization as ContextUtilization
from pytest_ragmetrics.metrics.critiques import AspectCritic as AspectCritic
from pytest_ragmetrics.metrics.critiques import AspectCritique as AspectCritique
from pytest_ragmetrics.metrics.critiques import CriteriaMet as CriteriaMet
from pytest_ragmetrics.metrics.critiques import Rubric as Rubric
from pytest_ragmetrics.metrics.critiques import SimpleCriteria as SimpleCriteria
from pytest_ragmetrics.metrics.dialogues import ConversationCompleteness as ConversationCompleteness
from pytest_ragmetrics.metrics.dialogues import KnowledgeRetention as KnowledgeRetention
from pytest_ragmetrics.metrics.dialogues import RoleAdherence as RoleAdherence
from pytest_ragmetrics.metrics.dialogues import TurnRelevancy as TurnRelevancy
from pytest_ragmetrics.metrics.grounding import LexicalContextRecall as LexicalContextRecall
from pytest_ragmetrics.metrics.grounding import LexicalGrounding as LexicalGrounding
from pytest_ragmetrics.metrics.grounding import NamesAligned as NamesAligned
from pytest_ragmetrics.metrics.grounding import NumbersAligned as NumbersAligned
from pytest_ragmetrics.metrics.judged import Ask as Ask
from pytest_ragmetrics.metrics.judged import JudgedMetric as JudgedMetric
from pytest_ragmetrics.metrics.quotes import QuotedSpansAlignment as QuotedSpansAlignment
from pytest_ragmetrics.metrics.quotes import quoted_spans_alignment as quoted_spans_alignment
from pytest_ragmetrics.metrics.ragas import RagasScore as RagasScore
from pytest_ragmetrics.metrics.ragas import ragas_score as ragas_score
from pytest_ragmetrics.metrics.ratings import AnswerAccuracy as AnswerAccuracy
from pytest_ragmetrics.metrics.ratings import ContextPrecisionProportion as ContextPrecisionProportion
from pytest_ragmetrics.metrics.ratings import ContextRelevance as ContextRelevance
from pytest_ragmetrics.metrics.ratings import Correctness as Correctness
from pytest_ragmetrics.metrics.ratings import Relevance as Relevance
from pytest_ragmetrics.metrics.ratings import ResponseGroundedness as ResponseGroundedness
from pytest_ragmetrics.metrics.registry import metric_named as metric_named
from pytest_ragmetrics.metrics.retrieval import MAP as MAP
from pytest_ragmetrics.metrics.retrieval import MRR as MRR
from pytest_ragmetrics.metrics.retrieval import NDCG as NDCG
from pytest_ragmetrics.metrics.retrieval import HitRate as HitRate
from pytest_ragmetrics.metrics.retrieval import IDBasedContextPrecision as IDBasedContextPrecision
from pytest_ragmetrics.metrics.retrieval import IDBasedContextRecall as IDBasedContextRecall
from pytest_ragmetrics.metrics.retrieval import NonLLMContextPrecision as NonLLMContextPrecision
from pytest_ragmetrics.metrics.retrieval import (
    NonLLMContextPrecisionWithReference as NonLLMContextPrecisionWithReference,
)
from pytest_ragmetrics.metrics.retrieval import NonLLMContextRecall as NonLLMContextRecall
from pytest_ragmetrics.metrics.retrieval import PrecisionAtK as PrecisionAtK
from pytest_ragmetrics.metrics.retrieval import RecallAtK as RecallAtK
from pytest_ragmetrics.metrics.strings import BleuScore as BleuScore
from pytest_ragmetrics.metrics.strings import CHRFScore as CHRFScore
from pytest_ragmetrics.metrics.strings import ExactMatch as ExactMatch
from pytest_ragmetrics.metrics.strings import NonLLMStringSimilarity as NonLLMStringSimilarity
from pytest_ragmetrics.metrics.strings import RougeScore as RougeScore
from pytest_ragmetrics.metrics.strings import StringPresence as StringPresence
from pytest_ragmetrics.metrics.strings import TokenF1 as TokenF1
from pytest_ragmetrics.metrics.tool_calls import ToolCallAccuracy as ToolCallAccuracy
from pytest_ragmetrics.metrics.tool_calls import ToolCallF1 as ToolCallF1

# pytest_ragmetrics.metrics.critiques
class Harmfulness(AspectCritique): ...

# pytest_ragmetrics.metrics.critiques
class Maliciousness(AspectCritique): ...

# pytest_ragmetrics.metrics.critiques
class Coherence(AspectCritique): ...

# pytest_ragmetrics.metrics.critiques
class CorrectnessAspect(AspectCritique): ...

# pytest_ragmetrics.metrics.critiques
class Conciseness(AspectCritique): ...

# pytest_ragmetrics.metrics.critiques
class Harmlessness(AspectCritique): ...
