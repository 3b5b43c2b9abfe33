// The text of a set as it is encoded, and the parts of it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lockstep/data/options.h"
#include "lockstep/data/peer_group.h"
#include "lockstep/data/record_source.h"
#include "lockstep/data/validation_split.h"
#include "lockstep/data/vocabulary.h"
#include "token_file.h"

namespace lockstep {

/// The tokens of some files. All ranks hold the same.
struct EncodedText {
  std::string name;
  std::vector<std::string> paths = {};
  std::string schema;
  std::shared_ptr<const TokenFile> tokens = nullptr;
  /// Of the training text: what is trained on, and what is held back behind it.
  Range train = {};
  Range validation = {};
  Range test = {};
};

/// *Collective.* `text`: what `key` says; `schema`: as for open_texts(). Errors as there.
EncodedText encode_text(const DataOptions& data, const std::string& text, const std::string& key,
                        const DataParts& parts, const std::string& schema, PeerGroup& peers);

}  // namespace lockstep
