#include "declare_data.h"

namespace lockstep {

void declare_data(OptionList& list, DataOptions& data, const KnownNames& names) {
  list.choice("data.format", data.format, "Format of the data files", names.formats).if_not_given =
      "by the extension of data.train";
  list.option("data.train", data.train, "File of the training samples").if_not_given = "required by files";
  list.option("data.train_labels", data.train_labels, "File of their labels").if_not_given = "none";
  list.option("data.validation", data.validation, "File of the samples evaluated during training")
      .if_not_given = "no validation";
  list.option("data.validation_labels", data.validation_labels, "File of their labels").if_not_given = "none";
  list.option("data.test", data.test,
              "File of the samples evaluated at the end; without a validation set also during training")
      .if_not_given = "no test";
  list.option("data.test_labels", data.test_labels, "File of their labels").if_not_given = "none";
  list.option("data.mode", data.mode,
              "shard: the replicas divide the samples; full: every replica walks all of them, so an epoch is "
              "as many times longer as there are replicas");
  list.option(
      "data.mean", data.mean,
      "Subtracted from each feature as read (bytes of IDX files are read as 0 to 1); one number for all "
      "features or one for each");
  list.option("data.std", data.std,
              "Divides each feature after the mean is subtracted; one number for all or one for each",
              above(0));
  list.option("data.augment", data.augment,
              "Random changes of the training pictures, anew in each epoch, such as \"crop(4) flip "
              "cutout(8)\"; never in evaluation")
      .if_not_given = "none";
  list.option("data.prefetch", data.prefetch, "Steps of samples prepared ahead, on a thread of their own",
              between(1, 1000));
  SyntheticOptions& synthetic = data.synthetic;
  list.option("data.synthetic_rows", synthetic.rows, "Training samples to make up", between(1, kMostSamples))
      .if_not_given = "required by format 'synthetic'";
  list.option("data.synthetic_validation_rows", synthetic.validation_rows, "Validation samples to make up",
              between(0, kMostSamples));
  list.option("data.synthetic_test_rows", synthetic.test_rows, "Test samples to make up",
              between(0, kMostSamples));
  list.option("data.synthetic_features", synthetic.features, "Numbers in a made-up sample",
              between(1, kMostWidth));
  list.option("data.synthetic_classes", synthetic.classes,
              "Classes of the made-up samples; 0: a real number as target", between(0, kMostWidth));
  list.option("data.synthetic_noise", synthetic.noise,
              "Standard deviation of the made-up samples around the centre of their class", at_least(0));
}

}  // namespace lockstep
