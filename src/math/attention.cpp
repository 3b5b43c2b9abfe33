// Heads are copied first, turned and with zeros up to whole tiles (tile_products.h), so that no tile is
// ragged; a copied matrix lies *in rows* (positions x size) or *in panels*: turned around, kWidth positions
// side by side.
//
// Scores have a row for each key, so that what belongs to a query stands in a vector. Forward goes from block
// to block of queries, and takes the keys that a block sees in chunks. Of each query it carries the largest
// score m so far, the sum of e^(score - m), and the sum of values with these weights; both sums shrink by
// e^(m before - m) when m grows. Backward goes from chunk to chunk of queries, and inside from block to block
// of keys.
#include "lockstep/math/attention.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <limits>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/random.h"
#include "lockstep/math/elementary.h"
#include "lockstep/math/kernels.h"
#include "tile_products.h"

namespace lockstep {
namespace {

using namespace tiles;

constexpr Index kBlock = 16;  // queries (forward) or keys (backward) at a time
static_assert(kBlock == kWidth);
constexpr Index kChunk = 128;  // keys (forward) or queries (backward) at a time
// Above all scores that are masked, and below all others.
constexpr Scalar kLowest = std::numeric_limits<Scalar>::lowest() / 2;
constexpr Scalar kMasked = -std::numeric_limits<Scalar>::infinity();

// One head of all positions, in rows of `width` and in panels.
struct Head {
  Index size;
  Index width;  // size, up to whole panels
  Scalar* rows;
  Scalar* panels;

  Scalar* row(Index position) const { return rows + position * width; }
  Left as_left(Index position) const { return {row(position), width, 1}; }
  Right as_right(Index position) const { return {row(position), width, kWidth}; }
  Right turned(Index position) const { return {panels + position * width, kWidth, width * kWidth}; }
};

// A thread's memory, linear in the positions, with any content. Each begins at its start, so a thread has one
// at a time.
class Scratch : NoCopy {
 public:
  Scratch(const AttentionShape& shape, Index heads, Index scalars)
      : size_(shape.size),
        width_(round_up(shape.size, kWidth)),
        positions_(round_up(shape.positions, kWidth)) {
    thread_local AlignedBuffer<Scalar> own;
    const Index needed = heads * positions_ * 2 * width_ + scalars;
    if (own.size() < needed) own = AlignedBuffer<Scalar>(needed);
    next_ = own.data();
    assert(!in_use() && "a thread has one scratch at a time");
    in_use() = true;
  }
  ~Scratch() { in_use() = false; }
  Scalar* take(Index scalars) {
    Scalar* const taken = next_;
    next_ += round_up(scalars, kWidth);
    return taken;
  }
  Head take_head() {
    Scalar* const rows = take(positions_ * width_);
    return {.size = size_, .width = width_, .rows = rows, .panels = take(positions_ * width_)};
  }

 private:
  static bool& in_use() {
    thread_local bool used = false;
    return used;
  }

  Index size_;
  Index width_;
  Index positions_;
  Scalar* next_ = nullptr;
};

// A vector turned by the angles of its position, or back.
void turn(const AttentionShape& shape, Index position, bool back, Scalar* vector) {
  const Index half = shape.size / 2;
  const Scalar* cosines = shape.rotation.data() + position * shape.size;
  const Scalar* sines = cosines + half;
  const Scalar sign = back ? -1 : 1;
  for (Index i = 0; i < half; ++i) {
    const Scalar a = vector[i];
    const Scalar b = vector[i + half];
    vector[i] = a * cosines[i] - sign * b * sines[i];
    vector[i + half] = b * cosines[i] + sign * a * sines[i];
  }
}

// The place of a head: where it begins in a position, how far positions lie apart, and what becomes of its
// vectors.
struct Place {
  Index begin;
  Index stride;
  bool turns;
  Scalar factor = 1;
};

struct Places {
  Place query, key, value, output;
};
Places places_of(const AttentionShape& shape, Index head) {
  const Index width = shape.input_width();
  const Index kv = head / shape.group();
  const bool turns = !shape.rotation.empty();
  return {.query = {head * shape.size, width, turns, 1 / std::sqrt(static_cast<Scalar>(shape.size))},
          .key = {(shape.heads + kv) * shape.size, width, turns},
          .value = {(shape.heads + shape.kv_heads + kv) * shape.size, width, false},
          .output = {head * shape.size, shape.output_width(), false}};
}

// Copies the positions that count as the products take them, turned and times a factor; zeros behind them.
void copy_rows(const AttentionShape& shape, const Scalar* x, const Place& place, Index length,
               const Head& to) {
  // Vectors of a head lie too far apart for the processor to guess the next.
  constexpr Index kAhead = 8;  // positions
  const Index positions = round_up(shape.positions, kWidth);
  for (Index t = 0; t < length; ++t) {
    const Scalar* from = x + t * place.stride + place.begin;
    if (t + kAhead < length)
      prefetch_to_read({from + kAhead * place.stride, static_cast<std::size_t>(shape.size)});
    Scalar* row = to.row(t);
#pragma GCC ivdep
    for (Index i = 0; i < shape.size; ++i) row[i] = from[i] * place.factor;
    for (Index i = shape.size; i < to.width; ++i) row[i] = 0;
    if (place.turns) turn(shape, t, false, row);
  }
  std::fill(to.row(length), to.row(positions), Scalar{0});
}

void fill_panels(Index positions, const Head& head) {
  for (Index t = 0; t < positions; t += kLanes) {
    for (Index i = 0; i < head.width; i += kLanes) {
      turn_square(head.row(t) + i, head.width,
                  head.panels + t / kWidth * kWidth * head.width + i * kWidth + t % kWidth);
    }
  }
}

// The gradient of what copy_rows() copied.
void put_rows(const AttentionShape& shape, const Head& from, const Place& place, Index length, Scalar* to) {
  for (Index t = 0; t < shape.positions; ++t) {
    Scalar* const target = to + t * place.stride + place.begin;
    if (t >= length) {
      std::fill_n(target, shape.size, Scalar{0});
      continue;
    }
    Scalar* row = from.row(t);
    if (place.turns) turn(shape, t, true, row);
    for (Index i = 0; i < shape.size; ++i) target[i] = row[i] * place.factor;
  }
}

// In fixed lanes side by side: a single sum would wait for each addition.
Scalar dot(const Scalar* a, const Scalar* b, Index size) {
  Scalar lanes[kWidth]{};
  Index i = 0;
  for (; i + kWidth <= size; i += kWidth)
    for (Index lane = 0; lane < kWidth; ++lane) lanes[lane] += a[i + lane] * b[i + lane];
  for (Index lane = 0; i < size; ++i, ++lane) lanes[lane] += a[i] * b[i];
  for (Index half = kWidth / 2; half > 0; half /= 2)
    for (Index lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  return lanes[0];
}

Scalar larger(Scalar a, Scalar b) {
  return a > b ? a : b;
}

// Masks the scores of queries, in columns, that do not see a key. Rows begin `stride` apart.
void mask(const AttentionShape& shape, Index length, Range keys, Range queries, Scalar* scores,
          Index stride) {
  const bool all = queries.end <= length && shape.seen_by(queries.begin, length).contains(keys) &&
                   shape.seen_by(queries.end - 1, length).contains(keys);
  for (Index key = keys.begin; !all && key < keys.end; ++key, scores += stride) {
    const Range seeing = shape.seeing(key, length);
    const Index first = std::clamp(seeing.begin, queries.begin, queries.end) - queries.begin;
    const Index end = std::clamp(seeing.end - queries.begin, first, queries.size());
    std::fill(scores, scores + first, kMasked);
    std::fill(scores + end, scores + queries.size(), kMasked);
  }
}

// Draws the factors of a tile of weights: kWidth keys in rows, which begin `stride` apart, by kWidth
// queries.
void draw_factors(const AttentionDropout& dropout, Index head, Index key, Index query, Scalar* factors,
                  Index stride) {
  constexpr Index kHalf = kWidth / 2;
  constexpr int kDigits = 16;  // a draw is half of a random number
  std::array<std::uint32_t, kWidth * kHalf> bits;
  fill_bits({.seed = dropout.seed,
             .purpose = Purpose::kDropout,
             .a = static_cast<std::uint64_t>(head),
             .b = static_cast<std::uint64_t>(key) << 32 | static_cast<std::uint64_t>(query)},
            bits);
  const auto kept = static_cast<Scalar>(1 / (1 - dropout.rate));
  const auto dropped = static_cast<std::uint32_t>(std::ceil(std::ldexp(dropout.rate, kDigits)));
  for (Index i = 0; i < kWidth * kHalf; ++i) {
    Scalar* const to = factors + i / kHalf * stride + i % kHalf;
    to[0] = value_if((at(bits, i) & 0xffffU) >= dropped, kept);
    to[kHalf] = value_if(at(bits, i) >> kDigits >= dropped, kept);
  }
}

// For each query of a block.
using OfQueries = Scalar[kBlock];

struct HeadForward {
  const AttentionShape& shape;
  Index length;
  const AttentionDropout& dropout;
  Index number = 0;  // of the head
  Scratch scratch{shape, 3, kBlock*(kChunk + round_up(shape.size, kWidth))};
  Head q = scratch.take_head(), k = scratch.take_head(), v = scratch.take_head();
  Scalar* scores = scratch.take(kBlock * kChunk);   // kChunk x kBlock
  Scalar* values = scratch.take(kBlock * q.width);  // kBlock x width

  // The queries from `begin` on: the sums of values, the largest scores and the sums of weights.
  void block(Index begin, OfQueries& most, OfQueries& sum) const {
    std::fill_n(most, kBlock, kLowest);
    std::fill_n(sum, kBlock, Scalar{0});
    const Index last = std::min(begin + kBlock, length) - 1;
    const Range keys{shape.seen_by(begin, length).begin / kWidth * kWidth,
                     round_up(shape.seen_by(last, length).end, kWidth)};
    for (Index from = keys.begin; from < keys.end; from += kChunk) {
      const Index count = std::min(keys.end - from, kChunk);
      multiply(count, kBlock, q.size, k.as_left(from), q.turned(begin), {scores, kBlock, Write::kReplace});
      for (Index key = from; key < from + count; key += kWidth)
        mask(shape, length, {key, key + kWidth}, {begin, begin + kBlock}, scores + (key - from) * kBlock,
             kBlock);
      weigh(count, most, sum, from > keys.begin);
      if (dropout.rate > 0) drop(from, count, begin);
      multiply(kBlock, q.width, count, {scores, 1, kBlock}, v.as_right(from),
               {values, q.width, from > keys.begin ? Write::kAdd : Write::kReplace});
    }
  }

 private:
  // Scores become weights; what was summed with the weights before is scaled to them.
  void weigh(Index count, OfQueries& most, OfQueries& sum, bool scales) const {
    OfQueries now;
    OfQueries factor;
    std::copy_n(most, kBlock, now);
    for (Index j = 0; j < count; ++j)
      for (Index i = 0; i < kBlock; ++i) now[i] = larger(scores[j * kBlock + i], now[i]);
    for (Index i = 0; i < kBlock; ++i) {
      factor[i] = exp_nonpositive(most[i] - now[i]);
      most[i] = now[i];
      sum[i] *= factor[i];
    }
    for (Index j = 0; j < count; ++j) {
      Scalar* const row = scores + j * kBlock;
      for (Index i = 0; i < kBlock; ++i) {
        row[i] = exp_nonpositive(row[i] - now[i]);
        sum[i] += row[i];
      }
    }
    for (Index i = 0; scales && i < kBlock; ++i)
      for (Index c = 0; c < q.width; ++c) values[i * q.width + c] *= factor[i];
  }

  // Their sum is that of all weights, dropped or not.
  void drop(Index from, Index count, Index query) const {
    Scalar factors[kWidth * kBlock];
    for (Index key = 0; key < count; key += kWidth) {
      draw_factors(dropout, number, from + key, query, factors, kBlock);
      for (Index i = 0; i < kWidth * kBlock; ++i) scores[key * kBlock + i] *= factors[i];
    }
  }
};

struct HeadBackward {
  const AttentionShape& shape;
  Index length;
  const AttentionDropout& dropout;
  Index number = 0;  // of the head
  Index padded = round_up(shape.positions, kWidth);
  Scratch scratch{shape, 7, 2 * padded + 3 * kBlock* kChunk};
  Head q = scratch.take_head(), k = scratch.take_head(), v = scratch.take_head(), dy = scratch.take_head();
  Head dq = scratch.take_head(), dk = scratch.take_head(), dv = scratch.take_head();
  Scalar* logs = scratch.take(padded);              // of each query
  Scalar* means = scratch.take(padded);             // of the gradients of its weights: dy · y
  Scalar* weights = scratch.take(kBlock * kChunk);  // kBlock x kChunk
  Scalar* slopes = scratch.take(kBlock * kChunk);   // likewise
  Scalar* factors = scratch.take(kBlock * kChunk);  // likewise, of dropout

  void clear(const Head& head) const { std::fill_n(head.rows, padded * head.width, Scalar{0}); }

  void take_queries(const AttentionBackward& pass, const Places& at, const Scalar* logs_of_head) {
    copy_rows(shape, pass.input.x, at.query, length, q);
    copy_rows(shape, pass.dy, at.output, length, dy);
    fill_panels(padded, q);
    fill_panels(padded, dy);
    std::fill(std::copy_n(logs_of_head, length, logs), logs + padded, Scalar{0});
    std::fill_n(means, padded, Scalar{0});
    for (Index t = 0; t < length; ++t) {
      const Scalar* y = pass.y + t * at.output.stride + at.output.begin;
      means[t] = dot(dy.row(t), y, shape.size);
    }
  }

  // The keys from `key` on with `count` queries from `query` on. In the forward pass, of the scores S = Q
  // K^T: P = e^(S - log), Y = (P * factors) V. So, with a row for each query:
  //   dP = (dY V^T) * factors;  dS = P * (dP - dY . Y);  dV += (P * factors)^T dY;  dK += dS^T Q;  dQ += dS K
  // Here `weights` are P and `slopes` dP, then dS, with a row for each key.
  void block(Index key, Index query, Index count) const {
    const auto replace = [](Scalar* to) { return Result{to, kChunk, Write::kReplace}; };
    const auto add = [&](Scalar* to) { return Result{to, q.width, Write::kAdd}; };
    multiply(kBlock, count, q.size, k.as_left(key), q.turned(query), replace(weights));
    multiply(kBlock, count, q.size, v.as_left(key), dy.turned(query), replace(slopes));
    mask(shape, length, {key, key + kBlock}, {query, query + count}, weights, kChunk);
    for (Index j = 0; dropout.rate > 0 && j < count; j += kWidth)
      draw_factors(dropout, number, key, query + j, factors + j, kChunk);
    drop(count, slopes);
    for (Index row = 0; row < kBlock; ++row) {
      Scalar* const p = weights + row * kChunk;
      Scalar* const d = slopes + row * kChunk;
#pragma GCC ivdep
      for (Index j = 0; j < count; ++j) {
        p[j] = exp_nonpositive(p[j] - logs[query + j]);  // at most 0, but for rounding
        d[j] = p[j] * (d[j] - means[query + j]);
      }
    }
    drop(count, weights);
    multiply(kBlock, q.width, count, {weights, kChunk, 1}, dy.as_right(query), add(dv.row(key)));
    multiply(kBlock, q.width, count, {slopes, kChunk, 1}, q.as_right(query), add(dk.row(key)));
    multiply(count, q.width, kBlock, {slopes, 1, kChunk}, k.as_right(key), add(dq.row(query)));
  }

  void drop(Index count, Scalar* of_weights) const {
    for (Index row = 0; dropout.rate > 0 && row < kBlock; ++row) {
      for (Index j = 0; j < count; ++j) of_weights[row * kChunk + j] *= factors[row * kChunk + j];
    }
  }

  void chunk(Index query, Index end) const {
    const Range keys{shape.seen_by(query, length).begin / kBlock * kBlock,
                     shape.seen_by(std::min(end, length) - 1, length).end};
    for (Index key = keys.begin; key < keys.end; key += kBlock) {
      const Range queries = intersect(
          {query, end}, {shape.seeing(key, length).begin / kWidth * kWidth,
                         round_up(shape.seeing(std::min(key + kBlock, length) - 1, length).end, kWidth)});
      if (!queries.empty()) block(key, queries.begin, queries.size());
    }
  }
};

}  // namespace

Range AttentionShape::seen_by(Index query, Index length) const {
  if (query >= length) return {};
  return {window == 0 ? 0 : std::max<Index>(query - window + 1, 0),
          causal ? query + 1 : (window == 0 ? length : std::min(query + window, length))};
}

Range AttentionShape::seeing(Index key, Index length) const {
  if (key >= length) return {};
  return {causal ? key : (window == 0 ? 0 : std::max<Index>(key - window + 1, 0)),
          window == 0 ? length : std::min(key + window, length)};
}

void attend(const AttentionShape& shape, const AttentionInput& input, Scalar* y, Scalar* logs) {
  const Scalar* const x = input.x;
  const Index length = input.length;
  HeadForward pass{shape, length, input.dropout};
  std::fill(y + length * shape.output_width(), y + shape.positions * shape.output_width(), Scalar{0});
  std::fill_n(logs, shape.heads * shape.positions, Scalar{0});
  for (Index head = 0; head < shape.heads; ++head) {
    const Places at = places_of(shape, head);
    pass.number = head;
    copy_rows(shape, x, at.query, length, pass.q);
    fill_panels(round_up(shape.positions, kWidth), pass.q);
    if (head % shape.group() == 0) {
      copy_rows(shape, x, at.key, length, pass.k);
      copy_rows(shape, x, at.value, length, pass.v);
    }
    for (Index begin = 0; begin < length; begin += kBlock) {
      OfQueries most;
      OfQueries sum;
      pass.block(begin, most, sum);
      for (Index row = 0; row < std::min(kBlock, length - begin); ++row) {
        Scalar* const to = y + (begin + row) * at.output.stride + at.output.begin;
        const Scalar factor = 1 / sum[row];
        for (Index i = 0; i < shape.size; ++i) to[i] = pass.values[row * pass.q.width + i] * factor;
        logs[head * shape.positions + begin + row] = most[row] + logarithm(sum[row]);
      }
    }
  }
}

void attend_backward(const AttentionShape& shape, const AttentionBackward& pass, Scalar* dx) {
  const Scalar* const x = pass.input.x;
  const Index length = pass.input.length;
  HeadBackward own{shape, length, pass.input.dropout};
  for (Index head = 0; head < shape.heads; ++head) {
    const Places at = places_of(shape, head);
    own.number = head;
    own.take_queries(pass, at, pass.logs + head * shape.positions);
    own.clear(own.dq);
    if (head % shape.group() == 0) {
      copy_rows(shape, x, at.key, length, own.k);
      copy_rows(shape, x, at.value, length, own.v);
      own.clear(own.dk);
      own.clear(own.dv);
    }
    for (Index query = 0; query < length; query += kChunk)
      own.chunk(query, std::min(query + kChunk, round_up(length, kWidth)));
    put_rows(shape, own.dq, at.query, length, dx);
    if ((head + 1) % shape.group() == 0) {
      put_rows(shape, own.dk, at.key, length, dx);
      put_rows(shape, own.dv, at.value, length, dx);
    }
  }
}

void attend_next(const AttentionShape& shape, const Scalar* x, Index count, Scalar* kept, Scalar* y) {
  const Index last = count - 1;
  const Index stride = 2 * shape.kv_heads * shape.size;  // of positions that are kept
  Scratch scratch(shape, 1, shape.positions);
  Scalar* const query = scratch.take(shape.size);
  Scalar* const weights = scratch.take(count);
  const bool turns = !shape.rotation.empty();
  std::copy_n(x + shape.output_width(), stride, kept + last * stride);
  for (Index head = 0; turns && head < shape.kv_heads; ++head)
    turn(shape, last, false, kept + last * stride + head * shape.size);
  const Range keys = shape.seen_by(last, count);
  for (Index head = 0; head < shape.heads; ++head) {
    const Scalar* const key = kept + head / shape.group() * shape.size;
    const Scalar* const value = key + shape.kv_heads * shape.size;
    const Scalar factor = places_of(shape, head).query.factor;
    for (Index i = 0; i < shape.size; ++i) query[i] = x[head * shape.size + i] * factor;
    if (turns) turn(shape, last, false, query);
    Scalar most = kLowest;
    for (Index t = keys.begin; t < keys.end; ++t) {
      weights[t] = dot(query, key + t * stride, shape.size);
      most = larger(weights[t], most);
    }
    Scalar* const to = y + head * shape.size;
    std::fill_n(to, shape.size, Scalar{0});
    Scalar sum = 0;
    for (Index t = keys.begin; t < keys.end; ++t) {
      const Scalar weight = exp_nonpositive(weights[t] - most);
      sum += weight;
#pragma GCC ivdep
      for (Index i = 0; i < shape.size; ++i) to[i] += weight * value[t * stride + i];
    }
    for (Index i = 0; i < shape.size; ++i) to[i] /= sum;
  }
}

}  // namespace lockstep
