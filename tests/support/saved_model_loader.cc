// Translates with a SavedModel the way TensorFlow Serving does: LoadSavedModel in C++, no Python anywhere.
//
//     saved_model_loader MODEL SIGNATURE [LIBRARY_OF_OPERATIONS...] < sentences
//
// The signature takes `text` and gives one string and one float tensor, (B,) or (B, N). Prints "score<tab>translation",
// N lines for each line read.

#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "tensorflow/c/c_api.h"
#include "tensorflow/cc/saved_model/loader.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/public/session_options.h"

namespace tf = tensorflow;

bool Load(const char* library) {
  TF_Status* status = TF_NewStatus();
  TF_LoadLibrary(library, status);
  const bool loaded = TF_GetCode(status) == TF_OK;
  if (!loaded) std::cerr << TF_Message(status) << "\n";
  TF_DeleteStatus(status);
  return loaded;
}

tf::Tensor ReadText() {
  std::vector<std::string> sentences;
  for (std::string line; std::getline(std::cin, line);) sentences.push_back(line);
  tf::Tensor text(tf::DT_STRING, tf::TensorShape({static_cast<int64_t>(sentences.size())}));
  for (size_t n = 0; n < sentences.size(); ++n) text.flat<tf::tstring>()(n) = sentences[n];
  return text;
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  for (int n = 3; n < argc; ++n) {
    if (!Load(argv[n])) return 1;
  }
  tf::SavedModelBundle bundle;
  tf::Status status = tf::LoadSavedModel(tf::SessionOptions(), tf::RunOptions(), argv[1], {"serve"}, &bundle);
  if (!status.ok()) {
    std::cerr << status << "\n";
    return 1;
  }
  const auto& signature = bundle.GetSignatures().at(argv[2]);
  std::vector<std::string> names;
  for (const auto& [key, output] : signature.outputs()) names.push_back(output.name());
  std::vector<tf::Tensor> outputs;
  status = bundle.GetSession()->Run({{signature.inputs().at("text").name(), ReadText()}}, names, {}, &outputs);
  if (!status.ok()) {
    std::cerr << status << "\n";
    return 1;
  }
  const int text = outputs[0].dtype() == tf::DT_STRING ? 0 : 1;
  for (int64_t n = 0; n < outputs[text].NumElements(); ++n) {
    std::printf("%.6f\t%s\n", outputs[1 - text].flat<float>()(n), outputs[text].flat<tf::tstring>()(n).c_str());
  }
  return 0;
}
