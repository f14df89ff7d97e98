"""Small models of keras-hub with random weights, whose translations differ from each other."""

import functools
import io
import json

import keras_hub
import numpy as np
import sentencepiece
import tokenizers
from keras_hub import models

from tfformer.data import phrasebook

LENGTH = 16  # tokens of a source or a translation
BACKBONE = {"num_layers": 2, "num_heads": 2, "hidden_dim": 16, "intermediate_dim": 24}
SPREAD = 0.3  # of the numbers in a matrix: with smaller ones all translations are equal
LENGTHS = {"encoder_sequence_length": LENGTH, "decoder_sequence_length": LENGTH}


@functools.cache
def texts() -> list[str]:
    """The shortest sources first; the last have more tokens than `LENGTH`."""
    return sorted(
        {pair.source for pair in phrasebook.pairs("valid")}, key=lambda text: (len(text), text)
    )


def t5(seed=1, **settings) -> models.T5Seq2SeqLM:
    """A T5 of version 1.1, whose output has a matrix that is not the embedding's."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts()),
        model_writer=model,
        vocab_size=200,
        model_type="bpe",  # which has no ties, as the repetitions of random models would have
        pad_id=0,
        eos_id=1,
        unk_id=2,
        bos_id=-1,
        minloglevel=2,
    )
    tokenizer = models.T5Tokenizer(proto=model.getvalue())
    shape = BACKBONE | {"activation": "gelu", "use_gated_activation": True}
    shape |= {"tie_embedding_weights": False} | settings
    backbone = models.T5Backbone(vocabulary_size=tokenizer.vocabulary_size(), **shape)
    preprocessor = models.T5Seq2SeqLMPreprocessor(tokenizer, **LENGTHS)
    return scrambled(models.T5Seq2SeqLM(backbone, preprocessor), seed)


def bart(seed=1) -> models.BartSeq2SeqLM:
    of_bytes = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    learned = tokenizers.Tokenizer(tokenizers.models.BPE())
    learned.pre_tokenizer = of_bytes
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<s>", "<pad>", "</s>", "<unk>"],
        initial_alphabet=of_bytes.alphabet(),
        show_progress=False,
    )
    learned.train_from_iterator(texts(), trainer)
    values = json.loads(learned.to_str())["model"]
    merges = [" ".join(pair) for pair in values["merges"]]
    tokenizer = models.BartTokenizer(vocabulary=values["vocab"], merges=merges)
    backbone = models.BartBackbone(
        vocabulary_size=tokenizer.vocabulary_size(), max_sequence_length=20, **BACKBONE
    )
    preprocessor = models.BartSeq2SeqLMPreprocessor(tokenizer, **LENGTHS)
    return scrambled(models.BartSeq2SeqLM(backbone, preprocessor), seed)


def scrambled(lm: keras_hub.models.Seq2SeqLM, seed: int) -> keras_hub.models.Seq2SeqLM:
    """Return a model whose translations depend on the source and do not repeat one token."""
    dice = np.random.default_rng(seed)
    for weight in lm.backbone.weights:
        is_vector = len(weight.shape) == 1
        spread = dice.normal(scale=0.1 if is_vector else SPREAD, size=weight.shape)
        weight.assign(weight + spread if is_vector else spread)
    table = lm.backbone.token_embedding.embeddings
    rows = np.array(table)
    rows[lm.preprocessor.tokenizer.end_token_id] *= 2  # so that some translations of BART end
    table.assign(rows)
    lm.compile(sampler="greedy", jit_compile=False)
    return lm


def greedy_pieces(lm: keras_hub.models.Seq2SeqLM, sentences: list[str]) -> list[list[str]]:
    """Return the pieces of keras-hub's own generation, the end token included."""
    tokenizer = lm.preprocessor.tokenizer
    inputs = lm.preprocessor.generate_preprocess(sentences, sequence_length=LENGTH + 1)
    stop = [tokenizer.end_token_id]
    rows = np.asarray(lm.make_generate_function()(inputs, stop)["decoder_token_ids"])[:, 1:]
    all_pieces = []
    for row in rows.tolist():
        count = row.index(stop[0]) + 1 if stop[0] in row else len(row)
        all_pieces.append([tokenizer.id_to_token(number) for number in row[:count]])
    return all_pieces
