// Translates with a SavedModel the way TensorFlow Serving does: by LoadSavedModel of C++, which the C API calls, with no
// Python anywhere. The headers of the C API compile in a fraction of a second, those of the C++ one in five.
//
//     saved_model_loader MODEL INPUT SCORES TEXTS [LIBRARY_OF_OPERATIONS...] < sentences
//
// INPUT, SCORES and TEXTS are two arguments each: an operation and the number of its output, such as
// `StatefulPartitionedCall 1`. Scores and texts are (B,) or (B, N). Prints "score<tab>translation", N lines for each line read.

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "tensorflow/c/c_api.h"

TF_Status* status = TF_NewStatus();

void Check() {
  if (TF_GetCode(status) == TF_OK) return;
  std::cerr << TF_Message(status) << "\n";
  std::exit(1);
}

TF_Output Find(TF_Graph* graph, char** words) {
  TF_Operation* operation = TF_GraphOperationByName(graph, words[0]);
  if (operation) return {operation, std::atoi(words[1])};
  std::cerr << "no operation " << words[0] << "\n";
  std::exit(1);
}

TF_Tensor* ReadText() {
  std::vector<std::string> sentences;
  for (std::string line; std::getline(std::cin, line);) sentences.push_back(line);
  const int64_t count = sentences.size();
  TF_Tensor* text = TF_AllocateTensor(TF_STRING, &count, 1, count * sizeof(TF_TString));
  TF_TString* strings = static_cast<TF_TString*>(TF_TensorData(text));
  for (int64_t n = 0; n < count; ++n) {
    TF_TString_Init(&strings[n]);
    TF_TString_Copy(&strings[n], sentences[n].data(), sentences[n].size());
  }
  return text;
}

int main(int argc, char** argv) {
  if (argc < 8) return 2;
  for (int n = 8; n < argc; ++n) {
    TF_LoadLibrary(argv[n], status);
    Check();
  }
  const char* tags[] = {"serve"};
  TF_Graph* graph = TF_NewGraph();
  TF_Session* session =
      TF_LoadSessionFromSavedModel(TF_NewSessionOptions(), nullptr, argv[1], tags, 1, graph, nullptr, status);
  Check();
  const TF_Output input = Find(graph, argv + 2), outputs[] = {Find(graph, argv + 4), Find(graph, argv + 6)};
  TF_Tensor *given = ReadText(), *found[2];
  TF_SessionRun(session, nullptr, &input, &given, 1, outputs, found, 2, nullptr, 0, nullptr, status);
  Check();
  const float* scores = static_cast<const float*>(TF_TensorData(found[0]));
  const TF_TString* texts = static_cast<const TF_TString*>(TF_TensorData(found[1]));
  for (int64_t n = 0; n < TF_TensorElementCount(found[0]); ++n) {
    const int size = TF_TString_GetSize(&texts[n]);
    std::printf("%.6f\t%.*s\n", scores[n], size, TF_TString_GetDataPointer(&texts[n]));
  }
  return 0;
}
