// Translates sentences with a static LiteRT export.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <sentencepiece_processor.h>

#include "litert.h"

class Translator {
 public:
  // Opens a version that `tfformer export --format litert --static` wrote. It stays open until the program ends.
  explicit Translator(const std::string& folder);

  // One thread at a time may translate.
  std::string translate(const std::string& sentence);

 private:
  struct Search {  // a signature, with a buffer for each of its tensors
    size_t signature;
    std::vector<LiteRtTensorBuffer> inputs, outputs;
    std::map<std::string, LiteRtTensorBuffer> named;  // `ids` and `lengths` that go in, `out ids` and `out lengths`
  };

  using Tokenizer = std::shared_ptr<sentencepiece::SentencePieceProcessor>;  // shared, as Swift copies a Translator

  Tokenizer source_ = std::make_shared<sentencepiece::SentencePieceProcessor>();
  Tokenizer target_ = std::make_shared<sentencepiece::SentencePieceProcessor>();
  LiteRtCompiledModel model_;
  std::map<size_t, Search> searches_;  // by the number of ids that a signature takes
};
