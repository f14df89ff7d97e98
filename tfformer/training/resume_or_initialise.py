"""How a training run starts: fresh, resumed, or initialised by another run."""

from pathlib import Path

from tfformer.config import Config, Dialect, ModelConfig
from tfformer.data.tokenizers import Tokenizer
from tfformer.run_directory import Model, Run, Tokenizers
from tfformer.training.early_stopping import History, is_over, is_validated
from tfformer.training.precision_and_batch_size import settled

MAY_CHANGE_ON_RESUME = (
    "training.epochs",
    "training.max_minutes",
    "training.patience",
    "training.wait_minutes",
    "training.strategy",  # the update is the same as on one device
    "training.shards",  # the update is the same as without shards
    "data.folder",  # on another machine; the text's digest is compared
    "data.cache",  # the cached ids are compared instead
)
SEARCH = tuple(f"dialect.{name}" for name in Dialect().search())
OUTSIDE_THE_ENCODER = (
    "architecture",
    "num_decoder_layers",
    "decoder",
    "tie_embeddings",
    "dialect.num_decoder_heads",
    "dialect.decoder_d_ff",
    "dialect.zero_start",
    "dialect.output_bias",
)


class Start:
    """A fresh start: a new vocabulary and random weights."""

    # The tokenizers of both sides; None if they are trained on the text
    tokenizers: Tokenizers | None = None
    # The tokenizer of the source, if only the target's is trained
    source_tokenizer: Tokenizer | None = None

    def settled(self, config: Config) -> Config:
        """Return the recipe, completed with the values that this start and this machine determine.

        Raises:
            ValueError: The recipe does not match the earlier run.
        """
        return settled(config)

    def restore(self, model: Model, run: Run) -> History:
        """Load the initial weights of `run` into a compiled model; return the epochs so far."""
        return []

    def keep_origin(self, run: Run) -> None:
        """Record the origin of the weights in a new run."""


class Resumed(Start):
    """The continuation of an interrupted run."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.tokenizers = run.tokenizers

    def settled(self, config: Config) -> Config:
        """Check the recipe against the run."""
        config = settled(config, self.run.config)
        wanted = config.to_dict()
        for section, values in self.run.config.to_dict().items():
            for key, old in values.items():
                new = wanted[section][key]
                if new != old and f"{section}.{key}" not in MAY_CHANGE_ON_RESUME:
                    raise ValueError(
                        f"--resume cannot change {section}.{key} from {old!r} to {new!r}; only "
                        f"{', '.join(MAY_CHANGE_ON_RESUME)} may change"
                    )
        return config

    def restore(self, model: Model, run: Run) -> History:
        """Continue with the state of the earlier run, if the texts are the same."""
        self.run.check_texts(run)
        history = self.run.load_resume_state(model)
        if is_over(run.config, history) and not any(map(is_validated, history)):
            raise ValueError(
                f"with this recipe, {self.run.folder} ends before its first validation; allow more "
                "epochs or minutes"
            )
        return history


class Initialised(Start):
    """A new run with the vocabulary and the best weights of another run."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.tokenizers = run.tokenizers

    def settled(self, config: Config) -> Config:
        """Check the recipe against the run, and let the tokenizers use the recipe's languages."""
        _check_same_model(self.run, config, may_differ=("dropout", *SEARCH))
        if self.run.tokenizers.languages and config.data.languages:
            try:
                self.tokenizers = self.run.tokenizers.with_languages(*config.data.languages)
            except ValueError as error:
                raise ValueError(f"data.languages={config.data.languages}: {error}") from None
        return settled(config.replace(tokenizer=self.run.config.tokenizer))

    def restore(self, model: Model, run: Run) -> History:
        """Copy the weights of the earlier run."""
        model.set_weights(self.run.load_model().get_weights())
        return []

    def keep_origin(self, run: Run) -> None:
        """Copy the record of an imported model's origin."""
        run.keep_origin(self.run)


class InitialisedEncoder(Start):
    """A new translator whose encoder starts from a language model of the source."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.source_tokenizer = run.tokenizers.target

    def settled(self, config: Config) -> Config:
        """Check the recipe against the run."""
        _check_same_model(self.run, config, may_differ=("dropout", *OUTSIDE_THE_ENCODER, *SEARCH))
        if config.tokenizer.shared:
            raise ValueError(
                f"{self.run.folder} is a language model of the source, whose vocabulary is not "
                "the target's; set tokenizer.shared=false and model.tie_embeddings=output"
            )
        return settled(config)

    def restore(self, model: Model, run: Run) -> History:
        """Copy the weights of the earlier run."""
        language_model = self.run.load_model()
        model.source_embedding.set_weights(language_model.embedding.get_weights())
        model.encoder.set_weights(language_model.stack.get_weights())
        return []


def start_of(config: Config, before: Run | None, init_from: str | Path | None) -> Start:
    """Return the start of a training: from a run to resume, from `init_from`, or a fresh one."""
    if before:
        return Resumed(before)
    if init_from is None:
        return Start()
    initial = Run.open(init_from)
    if config.model.has_encoder and not initial.config.model.has_encoder:
        return InitialisedEncoder(initial)
    return Initialised(initial)


def _check_same_model(run: Run, config: Config, may_differ: tuple[str, ...]) -> None:
    """Raise ValueError unless the run's weights fit into the recipe's model."""
    before, wanted = _settings(run.config.model), _settings(config.model)
    if any(before[name] != wanted[name] for name in wanted.keys() - set(may_differ)):
        raise ValueError(
            f"the recipe's model differs from the model of {run.folder}; omit the section 'model', "
            f"or copy it from config.json there (only {', '.join(may_differ)} may differ)"
        )


def _settings(model: ModelConfig) -> dict[str, object]:
    """Return the settings of a model, with each field of its dialect as `dialect.NAME`."""
    dialect = {f"dialect.{name}": value for name, value in model.dialect}
    return {**dict(model), "dialect": None, **dialect}
