"""The run that a training continues, or the one that gives its first weights."""

from pathlib import Path

from tfformer.config import Config, ModelConfig
from tfformer.run_directory import Model, Run
from tfformer.training.history import History, is_over, is_validated

MAY_CHANGE_ON_RESUME = (
    "training.epochs",
    "training.max_minutes",
    "training.patience",
    "training.wait_minutes",
    "training.strategy",  # the update is that of one device
    "data.folder",  # on another machine; the text's digest is compared
    "data.cache",  # whose ids are compared
)
OUTSIDE_THE_ENCODER = (
    "architecture",
    "num_decoder_layers",
    "tie_embeddings",
    "dialect.num_decoder_heads",
    "dialect.decoder_d_ff",
    "dialect.zero_start",
    "dialect.output_bias",
)


def check_same_run(config: Config, before: Config) -> None:
    """Raise ValueError if the recipe changes more of a resumed run than its length."""
    wanted = config.to_dict()
    for section, values in before.to_dict().items():
        for key, old in values.items():
            new = wanted[section][key]
            if new != old and f"{section}.{key}" not in MAY_CHANGE_ON_RESUME:
                raise ValueError(
                    f"--resume cannot change {section}.{key} from {old!r} to {new!r}; only "
                    f"{', '.join(MAY_CHANGE_ON_RESUME)} may change"
                )


def resumed_history(run: Run, config: Config, model: Model, text_digest: str) -> History:
    """Restore the run's state into the model and return its history.

    Raises:
        ValueError: The text differs, or the recipe ends the run without a result.
    """
    run.check_text(text_digest)
    history = run.load_resume_state(model)
    if is_over(config, history) and not any(map(is_validated, history)):
        raise ValueError(
            f"the recipe ends {run.folder} before its first validation; give it more epochs or "
            "minutes"
        )
    return history


def initial_run(config: Config, init_from: str | Path | None) -> Run | None:
    """Open the run to start from, if there is one."""
    if init_from is None:
        return None
    initial = Run.open(init_from)
    _check_fits(config, initial)
    return initial


def _check_fits(config: Config, initial: Run) -> None:
    """Raise ValueError unless the other run's weights fit into the recipe's model."""
    encoder_alone = gives_encoder(initial, config)
    may_differ = ("dropout", *(OUTSIDE_THE_ENCODER if encoder_alone else ()))
    before, wanted = _settings(initial.config.model), _settings(config.model)
    if any(before[name] != wanted[name] for name in wanted.keys() - may_differ):
        raise ValueError(
            f"the recipe's model is not that of {initial.folder}; copy the section 'model' of its "
            f"config.json (only {', '.join(may_differ)} may differ)"
        )
    if encoder_alone and config.tokenizer.shared:
        raise ValueError(
            f"{initial.folder} is a language model of the source, whose vocabulary is not the "
            "target's; set tokenizer.shared=false and model.tie_embeddings=output"
        )


def _settings(model: ModelConfig) -> dict[str, object]:
    """Return the settings of a model, each of its dialect as `dialect.NAME`."""
    dialect = {f"dialect.{name}": value for name, value in model.dialect}
    return {**dict(model), "dialect": None, **dialect}


def gives_encoder(initial: Run, config: Config) -> bool:
    """Return whether a language model initialises the encoder of a translator."""
    return config.model.has_encoder and not initial.config.model.has_encoder


def with_vocabulary_settings_of(other: Run | None, config: Config) -> Config:
    """Return the recipe with the other run's tokenizer settings if it takes both."""
    if other is None or gives_encoder(other, config):
        return config
    return config.replace(tokenizer=other.config.tokenizer)


def take_weights(model: Model, other: Model) -> None:
    """Copy the other model's weights; a language model's go to the source side."""
    if type(other) is type(model):
        model.set_weights(other.get_weights())
    else:
        model.source_embedding.set_weights(other.embedding.get_weights())
        model.encoder.set_weights(other.stack.get_weights())
