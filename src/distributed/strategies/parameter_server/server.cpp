// A server owns a slice of the weights and the optimizer state of that slice. Workers send it requests, which
// it handles one by one in order of arrival. A *pull* asks for the slice of the weights; the reply carries
// their version, the number of updates so far. A *push* brings a gradient of the slice. An *ask*, which only
// the first server gets, asks for permission to compute the next gradient; AdmissionPolicy decides it.
//
// Without backup workers each push is an update at once. Its staleness is the number of updates between the
// pull and the push. In mode bounded a pull waits until this server, too, has received from each worker as
// many gradients as the slowest had pushed when the first server gave permission (answerable()).
//
// With backup workers an update takes the gradients of several workers (StepCollector). The first server
// decides whose, as soon as enough have arrived there, and sends the decision to the other servers, which
// wait for exactly those gradients. A gradient that arrives for a step already made is dropped.
#include "server.h"

#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "lockstep/math/eigen_matrix.h"
#include "lockstep/math/kernels.h"

namespace lockstep {
namespace {

// Options of the queue of requests from the workers; with backup workers also from the first server, which
// sends its decisions.
RequestQueueOptions arrival_options(const StrategyContext& context, const Service& service,
                                    std::size_t number) {
  RequestQueueOptions options;
  const double timeout = number == 0 ? Timeouts::kFirstServer : Timeouts::kOtherServers;
  options.timeout_seconds = timeout * context.options.timeout_seconds;
  for (Index worker = 0; worker < service.workers; ++worker) {
    options.peers.push_back(static_cast<int>(worker));
  }
  if (context.options.backup_workers > 0 && number > 0) options.peers.push_back(service.server_rank(0));
  const std::string file = fmt::format("arrivals.{}.txt", number);
  if (!context.record_to.empty()) options.record_to = context.record_to / file;
  if (!context.options.replay.empty()) options.replay = std::filesystem::path(context.options.replay) / file;
  return options;
}

}  // namespace

Server::Server(Communicator& comm, Communicator& servers, const StrategyContext& context,
               const Service& service, std::span<Scalar> weights, WorkerStats& stats)
    : comm_(comm),
      options_(context.options),
      service_(service),
      number_(static_cast<std::size_t>(comm.rank() - service.workers)),
      link_mbit_(context.server_mbit),
      transfer_(Timeouts::kTransfer * context.options.timeout_seconds),
      server_timeout_(context.options.timeout_seconds),
      requests_(comm, arrival_options(context, service, number_)),
      admission_(context.options, service.workers),
      stats_(stats),
      weights_(weights),
      gradient_(context.layout.size),
      update_(context.layout, context.optimizer, clipping_rules(context, true), std::vector{slice()},
              [this, &servers](std::span<double> sums) {
                if (!collects()) return;
                const auto sum = servers.start_all_reduce_sum(as_buffer(sums));
                server_timeout_.wait([&] { return sum->test(); },
                                     [] { return std::string("another server"); });
              }),
      codec_(make_codec(context.options)),
      asking_(static_cast<std::size_t>(service.workers), false),
      pulls_(static_cast<std::size_t>(service.workers)),
      pushed_(static_cast<std::size_t>(service.workers)) {
  if (codec_ != nullptr) {
    decoder_.emplace(*codec_, slice(), slice().end, false);
    encoded_ = AlignedBuffer<std::byte>(decoder_->bytes());
  }
  if (options_.backup_workers == 0) return;
  collector_ = std::make_unique<StepCollector>(service.workers, service.workers - options_.backup_workers,
                                               slice().size());
}

void Server::serve(Index until, const ServeHooks& hooks) {
  hooks_ = &hooks;
  admission_.begin_round(until);
  present_ = requests_.peers();
  for (std::size_t peer = 0; peer < present_; ++peer) requests_.expect(peer);
  while (present_ > 0) handle(requests_.next());
  if (!first() || !collects()) return;
  // The gradients of a step that was never made, since one was not finite, count as dropped.
  for (std::size_t worker = 0; worker < pushed_.size(); ++worker) {
    const Index samples = std::exchange(pushed_[worker].header.samples, 0);
    if (samples > 0) stats_.count_drop(worker, samples);
  }
  for (std::size_t server = 1; server < service_.slices.size(); ++server) {
    send_header(server, {.kind = MessageKind::kDone});
  }
}

void Server::resume_after(Index steps) {
  version_ = steps;
  totals_.steps = steps;
  admission_.resume_after(steps);
}

void Server::add_saved(SavedState& state) {
  update_.add_saved(state, slice());
  if (!first()) return;
  state.push_back(saved_by_first(0, "totals.samples", std::span(&totals_.samples, 1)));
  state.push_back(saved_by_first(0, "totals.weight", std::span(&totals_.weight, 1)));
  state.push_back(saved_by_first(0, "totals.loss", std::span(&totals_.loss, 1)));
  state.push_back(saved_by_first(0, "totals.correct", std::span(&totals_.correct, 1)));
}

void Server::handle(std::size_t peer) {
  const MessageHeader& header = requests_.header(peer);
  if (header.ends_early != 0 || (first() && hooks_->ends_early())) admission_.cut_short();
  switch (header.kind) {
    case MessageKind::kAsk:
      asking_[peer] = true;
      break;
    case MessageKind::kPull:
      pulls_[peer] = header;
      break;
    case MessageKind::kPush:
      take_push(peer);
      break;
    case MessageKind::kBad:
      admission_.stop();
      break;
    case MessageKind::kDecision:
      receive_decision(peer);
      break;
    case MessageKind::kDone:
      --present_;
      return;
  }
  answer_pulls();
  if (first()) answer_askers();
  requests_.expect(peer);
}

void Server::answer_askers() {
  for (std::size_t worker = 0; worker < asking_.size(); ++worker) {
    if (!asking_[worker]) continue;
    const Permit permit = admission_.ask(worker, version_);
    requests_.set_waiting(worker, permit == Permit::kWait);
    if (permit == Permit::kWait) continue;
    asking_[worker] = false;
    PullReply reply{.granted = permit == Permit::kGo ? 1 : 0,
                    .slowest = admission_.slowest(),
                    .assignment = {.totals = totals_}};
    if (permit == Permit::kGo) {
      stats_.count_ahead(worker, admission_.ahead(worker));
      reply.assignment.step = admission_.go(worker, version_);
    }
    send(kPullReplies, requests_.rank(worker), bytes_of(std::as_const(reply)));
  }
}

// The message is on its way out before the weights change again, so a worker gets the weights of one version.
void Server::answer_pulls() {
  for (std::size_t worker = 0; worker < pulls_.size(); ++worker) {
    const bool ready = pulls_[worker] && answerable(*pulls_[worker]);
    requests_.set_waiting(worker, pulls_[worker] && !ready);
    if (!ready) continue;
    pulls_[worker].reset();
    take_time_of_link(slice().size() * Index{sizeof(Scalar)});
    send(kVersions, requests_.rank(worker), as_buffer(std::span<const Index>(&version_, 1)));
    send(kWeights, requests_.rank(worker), as_buffer(std::span<const Scalar>(part(weights_, slice()))));
  }
}

void Server::take_push(std::size_t worker) {
  const MessageHeader& header = requests_.header(worker);
  receive_gradient(worker, collects() ? collector_->gradient_of(worker) : part(gradient_.span(), slice()));
  admission_.pushed(worker);
  Pushed& pushed = pushed_[worker];
  if (first()) {
    pushed.header = header;
    pushed.moments.resize(static_cast<std::size_t>(header.moments));
    if (header.moments > 0) receive(kMoments, worker, as_buffer(std::span(pushed.moments)));
  }
  if (!collects()) {
    step_with(worker);
    if (first()) count(worker);
  } else if (header.step == version_) {
    collector_->add(worker, header.weight, header.lr);
    step_together();
  } else if (first()) {  // the step was made without it
    stats_.count_drop(worker, header.samples);
    pushed.header.samples = 0;
  }
}

void Server::receive_gradient(std::size_t worker, std::span<Scalar> to) {
  const Buffer message = decoder_ ? as_buffer(encoded_.span()) : as_buffer(to);
  receive(kGradients, worker, message);
  take_time_of_link(message.bytes());
  if (decoder_) decoder_->decode(encoded_.span(), to);
}

void Server::step_with(std::size_t worker) {
  hooks_->before_step(version_);
  const MessageHeader& header = requests_.header(worker);
  const Index staleness = version_ - header.version;
  stats_.count_staleness(worker, staleness);
  // Zhang et al. 2016, "Staleness-aware async-SGD for distributed deep learning", section 3.
  const double lr =
      options_.staleness_lr ? header.lr / static_cast<double>(std::max<Index>(staleness, 1)) : header.lr;
  update_.step(weights_, gradient_.span(), {.step = ++version_, .lr = lr});
  totals_.steps = version_;
}

// Makes the step that is under way if it is complete.
void Server::step_together() {
  if (first()) {
    if (const auto members = collector_->decide()) {
      for (std::size_t server = 1; server < service_.slices.size(); ++server) {
        send_header(server, {.kind = MessageKind::kDecision, .step = version_});
        send(kDecisions, service_.server_rank(server), as_buffer(std::span<const Index>(*members)));
      }
      collector_->set_members(*members);
    }
  }
  if (!collector_->complete()) return;
  hooks_->before_step(version_);
  for (std::size_t worker = 0; worker < pushed_.size(); ++worker) {
    if (!first() || !collector_->takes(worker)) continue;
    stats_.count_staleness(worker, 0);
    count(worker);
  }
  UpdateRequest request = collector_->take(part(gradient_.span(), slice()));
  request.step = ++version_;
  update_.step(weights_, gradient_.span(), request);
  totals_.steps = version_;
}

void Server::receive_decision(std::size_t peer) {
  std::vector<Index> members(static_cast<std::size_t>(service_.workers));
  receive(kDecisions, peer, as_buffer(std::span(members)));
  collector_->set_members(std::move(members));
  step_together();
}

void Server::count(std::size_t worker) {
  Pushed& pushed = pushed_[worker];
  stats_.count_step(worker, pushed.header.samples);
  totals_.samples += pushed.header.samples;
  totals_.weight += pushed.header.weight;
  totals_.loss += pushed.header.loss;
  totals_.correct += pushed.header.correct;
  if (!pushed.moments.empty()) hooks_->take_moments(pushed.moments);
  pushed.header.samples = 0;
}

void Server::receive(int channel, std::size_t peer, Buffer buffer) {
  const int rank = requests_.rank(peer);
  transfer_.wait(*comm_.start_receive(channel, rank, buffer), rank);
}

// A link of that speed, busy with one message.
void Server::take_time_of_link(Index bytes) const {
  if (link_mbit_ <= 0) return;
  const double bits = static_cast<double>(bytes) * 8;
  std::this_thread::sleep_for(std::chrono::duration<double>(bits / (link_mbit_ * 1e6)));
}

// With backup workers, one step takes the gradients of `needed` of the workers, and the rest arrive too late.
// Every server receives all gradients, each its own slice, in an order of its own. All of them must sum the
// gradients of equal workers, or the slices of the weights would belong to different steps. So the first
// server decides the members of the step, as soon as enough gradients are there, and the others get the
// decision by message.
//
// On each server a step is complete once the members are known and the gradients of all of them are there.
// The sum is taken in order of worker numbers, not of arrival, and each gradient is a mean, which counts with
// the weight of its samples.

StepCollector::StepCollector(Index workers, Index needed, Index size)
    : needed_(needed), weights_(static_cast<std::size_t>(workers)) {
  for (Index worker = 0; worker < workers; ++worker) gradients_.emplace_back(size);
}

void StepCollector::add(std::size_t worker, double weight, double lr) {
  weights_[worker] = weight;
  lr_ = lr;
}

std::optional<std::vector<Index>> StepCollector::decide() const {
  std::vector<Index> present;
  for (const std::optional<double>& weight : weights_) present.push_back(weight ? 1 : 0);
  if (std::ranges::count(present, 1) < needed_) return std::nullopt;
  return present;
}

bool StepCollector::complete() const {
  if (members_.empty()) return false;
  for (std::size_t worker = 0; worker < members_.size(); ++worker) {
    if (members_[worker] != 0 && !weights_[worker]) return false;
  }
  return true;
}

UpdateRequest StepCollector::take(std::span<Scalar> sum) {
  UpdateRequest request{.weight = 0, .lr = lr_};
  as_array(sum).setZero();
  for (std::size_t worker = 0; worker < members_.size(); ++worker) {
    if (members_[worker] == 0) continue;
    const double weight = weights_[worker].value();
    request.weight += weight;
    as_array(sum) += static_cast<Scalar>(weight) * as_array(gradients_[worker].span());
  }
  std::ranges::fill(weights_, std::nullopt);
  members_.clear();
  return request;
}

AdmissionPolicy::AdmissionPolicy(const DistOptions& options, Index workers)
    : options_(options),
      pushed_(static_cast<std::size_t>(workers), 0),
      last_step_(static_cast<std::size_t>(workers), -1) {}

void AdmissionPolicy::begin_round(Index until) {
  until_ = until;
  cut_short_ = false;
}

Permit AdmissionPolicy::ask(std::size_t worker, Index steps_done) const {
  if (stopped_ || cut_short_) return Permit::kStop;
  if (together()) {
    if (steps_done >= until_) return Permit::kStop;
    return last_step_[worker] < steps_done ? Permit::kGo : Permit::kWait;
  }
  if (granted_ >= until_) return Permit::kStop;
  // Ho et al. 2013, "More effective distributed ML via a stale synchronous parallel parameter server".
  const bool held = options_.mode == ServerMode::kBounded && ahead(worker) > options_.staleness;
  return held ? Permit::kWait : Permit::kGo;
}

Index AdmissionPolicy::go(std::size_t worker, Index steps_done) {
  last_step_[worker] = together() ? steps_done : granted_;
  ++granted_;
  return last_step_[worker];
}

}  // namespace lockstep
