#include "translator.h"

#include <algorithm>
#include <fstream>
#include <regex>
#include <stdexcept>

namespace {
const int kEndId = 3;

void check(int status, const std::string& what) {
  if (status != 0) throw std::runtime_error(what + ": LiteRT's status is " + std::to_string(status));
}

void write(LiteRtTensorBuffer buffer, const std::vector<int>& values) {
  void* memory;
  check(LiteRtLockTensorBuffer(buffer, &memory, kWrite), "writing ids");
  std::copy(values.begin(), values.end(), static_cast<int32_t*>(memory));
  check(LiteRtUnlockTensorBuffer(buffer), "writing ids");
}

std::vector<int> read(LiteRtTensorBuffer buffer, size_t count) {
  void* memory;
  check(LiteRtLockTensorBuffer(buffer, &memory, kRead), "reading ids");
  std::vector<int> values(static_cast<int32_t*>(memory), static_cast<int32_t*>(memory) + count);
  check(LiteRtUnlockTensorBuffer(buffer), "reading ids");
  return values;
}

// A buffer for the numbers of a tensor, which have four bytes; and how many there are.
LiteRtTensorBuffer buffer_of(LiteRtTensor tensor, LiteRtEnvironment environment, size_t* count) {
  LiteRtTensorType type;
  LiteRtTensorBuffer buffer;
  check(LiteRtGetRankedTensorType(tensor, &type), "a tensor's type");
  *count = 1;
  for (unsigned axis = 0; axis < type.rank; ++axis) {
    if (type.dimensions[axis] < 1) throw std::runtime_error("the shapes are not fixed; export the model with --static");
    *count *= type.dimensions[axis];
  }
  check(LiteRtCreateManagedTensorBuffer(environment, kHostMemory, &type, 4 * *count, &buffer), "a buffer");
  return buffer;
}
}  // namespace

Translator::Translator(const std::string& folder) {
  const bool is_shared = std::ifstream(folder + "/tokenizer.model").good();
  for (auto [side, name] : {std::pair(source_, "source"), std::pair(target_, "target")}) {
    const std::string path = folder + "/" + (is_shared ? "tokenizer" : name);
    if (!side->Load(path + ".model").ok()) throw std::runtime_error(path + ".model cannot be read");
    if (std::ifstream(path + ".pieces.json").good())
      throw std::runtime_error(folder + " is an imported model, whose ids are not SentencePiece's");
  }
  LiteRtEnvironment environment;
  LiteRtModel file;
  LiteRtOptions options;
  size_t count;
  const std::string path = folder + "/model.tflite";
  check(LiteRtCreateEnvironment(0, nullptr, &environment), "LiteRT");
  check(LiteRtCreateModelFromFile(environment, path.c_str(), &file), path);
  check(LiteRtCreateOptions(&options), "LiteRT's options");
  check(LiteRtSetOptionsHardwareAccelerators(options, kCpu), "LiteRT's options");
  check(LiteRtCreateCompiledModel(environment, file, options, &model_), path);
  check(LiteRtGetNumModelSignatures(file, &count), path);
  for (size_t number = 0; number < count; ++number) {
    LiteRtSignature signature;
    LiteRtTensor tensor;
    const char* name;
    check(LiteRtGetModelSignature(file, number, &signature), path);
    check(LiteRtGetSignatureKey(signature, &name), path);
    if (!std::regex_match(name, std::regex("translate(_[0-9]+)?"))) continue;
    Search search{number, {}, {}, {}};
    size_t inputs, outputs, width = 0, size;
    check(LiteRtGetNumSignatureInputs(signature, &inputs), path);
    for (size_t place = 0; place < inputs; ++place) {
      check(LiteRtGetSignatureInputName(signature, place, &name), path);
      check(LiteRtGetSignatureInputTensorByIndex(signature, place, &tensor), path);
      search.inputs.push_back(search.named[name] = buffer_of(tensor, environment, &size));
      width = std::max(width, size);  // of the ids; the lengths are one number
    }
    check(LiteRtGetNumSignatureOutputs(signature, &outputs), path);
    for (size_t place = 0; place < outputs; ++place) {
      check(LiteRtGetSignatureOutputName(signature, place, &name), path);
      check(LiteRtGetSignatureOutputTensorByIndex(signature, place, &tensor), path);
      search.outputs.push_back(search.named[std::string("out ") + name] = buffer_of(tensor, environment, &size));
    }
    if (width < 2) throw std::runtime_error(path + " has no fixed shapes; export the model with --static");
    searches_[width] = search;
  }
  if (searches_.empty()) throw std::runtime_error(path + " has no signature translate");
}

std::string Translator::translate(const std::string& sentence) {
  std::vector<int> ids = source_->EncodeAsIds(sentence);
  const size_t longest = searches_.rbegin()->first;
  const int length = std::min(ids.size(), longest - 1);  // the end token needs a position too
  auto& [width, search] = *searches_.upper_bound(length);
  ids.resize(length);
  ids.resize(width, kEndId);
  write(search.named["ids"], ids);
  write(search.named["lengths"], {length});
  check(LiteRtRunCompiledModel(model_, search.signature, search.inputs.size(), search.inputs.data(), search.outputs.size(),
                               search.outputs.data()), "the search");
  std::vector<int> found = read(search.named["out ids"], read(search.named["out lengths"], 1)[0]);
  found.erase(std::remove(found.begin(), found.end(), kEndId), found.end());
  return target_->DecodeIds(found);
}
