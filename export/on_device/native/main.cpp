// Translates standard input, a sentence per line: translate models/mine/1 < sentences.en > sentences.de
#include <iostream>

#include "translator.h"

int main(int, char** arguments) try {
  Translator translator(arguments[1]);
  for (std::string line; std::getline(std::cin, line);) std::cout << translator.translate(line) << "\n";
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
