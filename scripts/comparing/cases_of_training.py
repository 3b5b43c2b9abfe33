"""Cases of compare-outputs: losses, optimizers, models, strategies, and keys at other than their defaults."""

from .case import case
from .configs import ARRAYS, IMAGES, PLAIN_TABLE, SYNTHETIC


LOSSES = {
    "softmax_cross_entropy": ("classes", 3, "--train.label_smoothing 0.1 --eval.top_k 2"),
    "softmax_cross_entropy soft": ("soft", 3, "--train.calibrate temperature --data.train_weights data/weights.npy"),
    "softmax_focal": ("classes", 3, "--eval.metrics auc,brier,ece,average_precision,f1,mcc"),
    "multiclass_hinge": ("classes", 3, "--eval.metrics auc,average_precision,balanced_accuracy"),
    "binary_cross_entropy": ("yes", 1, "--eval.threshold youden --data.train_weights data/weights.npy"),
    "binary_focal": ("yes", 1, "--train.focal_alpha 0.3 --train.class_weights '0: 1,1: 3' --eval.class_weights true"),
    "binary_hinge": ("yes", 1, "--eval.metrics auc,f1"),
    "mean_squared_error": ("pair", 2, "--eval.metrics r2,spearman,root_mean_squared_error,mean_absolute_percentage_error"),
    "mean_absolute_error": ("values", 1, ""),
    "huber": ("values", 1, "--train.huber_delta 0.5 --data.train_weights data/weights.npy"),
    "quantile": ("values", 3, "--train.quantiles 0.1,0.5,0.9"),
    "poisson": ("counts", 1, ""),
    "tweedie": ("counts", 1, "--train.tweedie_power 1.3"),
    "gamma": ("positive", 1, ""),
    "cosine_distance": ("soft", 3, ""),
}
OPTIMIZERS = {
    "sgd": "--train.momentum 0.9 --train.nesterov true --train.weight_decay 0.01 --train.schedule step --train.decay_every '3 steps'",
    "adam": "--train.schedule plateau --train.plateau_patience '1 evaluations' --eval.every '2 steps'",
    "adamw": "--train.weight_decay 0.1 --train.schedule wsd --train.weight_decay_multiplier 'bias: 1'",
    "adagrad": "--train.schedule exponential --train.decay_every '4 steps'",
    "rmsprop": "--train.momentum 0.5 --train.schedule polynomial --train.decay_power 2",
    "lamb": "--train.schedule inverse_sqrt --train.warmup '3 steps'",
    "lion": "--train.lr 0.001 --train.schedule milestones --train.milestones '4 steps,8 steps'",
    "nadam": "--train.schedule one_cycle --train.lr_multiplier '0.*: 0.1'",
    "adafactor": "--train.scale_parameter true --train.clip_value 0.01 --train.lr_scaling sqrt",
    "muon": "--model.layers 'dense(8) relu dense(8) relu dense(3)' --train.swa_from '4 steps' --eval.every '4 steps'",
}
MODELS = {
    "layers": "concat(slice(0, 3) dense(4) | slice(3, 3) dense(4) tanh) layer_norm gelu residual(dense(8) silu) dropout(0.3) dense(3)",
    "activations": "dense(6) elu dense(6) leaky_relu dense(6) softplus dense(6) sigmoid dense(6, tie=6) batch_norm dense(3, init=xavier)",
    "periodic": "periodic(3, frequencies=4) dense(6) relu dense(3)",
    "ensemble": "scale tabm(2) tabm_dense(6) relu tabm_dense(6) tabm_heads(3)",
    "wide_deep": "wide_deep(dense(3) | dense(8) relu dense(3))",
}
EXPORTS = "safetensors npz onnx onnx_features"


def of_training():
    for name, (labels, outputs, flags) in LOSSES.items():
        yield case(f"losses/{name.replace(' ', '_')}", f"""
            trainer --config run.toml --train.loss {name.split()[0]} --data.train_labels data/{labels}.npy --model.layers 'dense(10) relu dense({outputs})' {flags}
            trainer eval --model run --json eval.json
            trainer predict --model run --input data/x.npy --output predictions.csv
            trainer export --model run --format onnx --output model.onnx
            """, run=ARRAYS)
    for name, flags in OPTIMIZERS.items():
        yield case(f"optimizers/{name}", f"trainer --config run.toml --train.optimizer {name} {flags}", run=ARRAYS)
    for name, layers in MODELS.items():
        yield case(f"models/{name}", f"""
            trainer plan --config run.toml --model.layers '{layers}' --np 1,2
            trainer --config run.toml --model.layers '{layers}' --train.lr_multiplier '0.*: 0.5' --report.tensorboard true
            for format in {EXPORTS}; do trainer export --model run --format $format --output model.$format; done
            """, run=ARRAYS)
    yield case("models/images", f"""
        trainer --config run.toml --model.layers 'conv2d(4, 3, stride=2, groups=1) batch_norm relu avgpool(2) residual(conv2d(6, 3, padding=same) tanh) global_avgpool dense(3)' --eval.precise_bn 4
        trainer --config preset.toml --run.dir lenet --model.preset lenet5 --model.outputs 10 --train.steps 2 --data.train data/train-images-idx3-ubyte.gz --data.train_labels data/train-labels-idx1-ubyte.gz
        for format in {EXPORTS}; do trainer export --model run --format $format --output model.$format; done
        trainer eval --model lenet
        """, run=IMAGES, preset="\n".join(line for line in IMAGES.splitlines() if not line.startswith("layers")))
    yield case("models/processor", """
        trainer --config run.toml --run.dir bf16 --train.precision bf16 --debug.emulate_bf16 true
        trainer --config run.toml --run.dir threads --train.threads 2
        """, needs="two cores and a processor with bf16", run=IMAGES)


def of_keys():
    """What other cases leave at its default: a run for each of several keys at a time, and plans."""
    yield case("keys/tables", """
        trainer --config run.toml --data.missing 'constant(0)' --data.scale minmax --data.encode index --model.layers 'dense(6) relu dense(3)'
        trainer --config run.toml --run.dir hash --data.missing mean --data.scale 'robust bins(4)' --data.encode 'hash(5)' --run.seed 7
        trainer --config run.toml --run.dir words --data.missing_values ',NA,?,Voss' --data.vocabulary 3 --data.scale none --data.fold_case true
        trainer --config run.toml --run.dir bins --data.scale 'bins(6, by=label, leaf=20)' --train.tail drop --run.log_every 3
        trainer --config run.toml --run.dir yes --data.label income --data.ignore id,joined,seen,stamp,zip,salary,rate,area,customer,part,persons,kind,t1,t2 --data.categorical city,income --data.positive low --model.layers 'dense(5) relu dense(1)' --train.loss binary_cross_entropy --eval.at_start true
        trainer --config run.toml --run.dir german --data.train data/german.csv --data.skip_lines 2 --data.separator ';' --data.decimal ',' --data.label art --data.numeric 'fläche,abstand' --data.categorical art --data.ignore preis --data.test '' --model.layers 'dense(3)'
        trainer --config run.toml --run.dir bare --data.train data/bare.tsv.gz --data.header no --data.label c4 --data.numeric c1,c2 --data.categorical c3,c4 --data.ignore '' --data.test '' --model.layers 'dense(2)' --data.quotes false
        ! trainer --config run.toml --run.dir none --data.header yes --data.train data/bare.tsv.gz
        for run in run hash words bins yes german bare; do trainer predict --model $run --input data/people_test.csv --output $run.csv; done; true
        trainer compare run hash words bins yes german bare --all
        """, run=PLAIN_TABLE)
    yield case("keys/records", """
        mpirun -np 2 trainer --config run.toml --data.shard_order contiguous --data.reshuffle shard --train.epochs 3
        mpirun -np 2 trainer --config own.toml --run.dir strided --data.shard_order strided --train.per_replica_batch 8 --train.epochs 2
        mpirun -np 2 trainer --config own.toml --run.dir batch --data.reshuffle batch --train.tail drop --train.samples 200 --train.global_batch 32
        mpirun -np 2 trainer --config run.toml --run.dir full --data.mode full --train.epochs 1 --eval.batch 7
        mpirun -np 2 trainer --config run.toml --run.dir own --data.validation data/x.npy --data.validation_labels data/classes.npy --data.validation_weights data/weights.npy --data.test data/x.npy --data.test_labels data/classes.npy --data.test_weights data/weights.npy
        mpirun -np 3 trainer --config run.toml --run.dir stream --data.memory stream --data.shard_by record --data.shuffle_buffer 30 --train.replicas 3 --train.global_batch 30
        trainer --config run.toml --run.dir audit --data.audit true --train.epochs 1
        trainer plan --config own.toml --np 1,2 --data.mode full --train.per_replica_batch 4 --train.epochs 2
        ! trainer plan --config run.toml --np 2 --data.memory_limit 0.000001
        trainer compare run strided batch full own stream
        """, run=ARRAYS, own="\n".join(line for line in ARRAYS.splitlines() if not line.startswith(("steps", "global_batch"))))
    yield case("keys/training", """
        trainer --config run.toml --model.init normal --model.init_std 0.2 --train.optimizer adam --train.beta1 0.8 --train.beta2 0.95 --train.epsilon 1e-3
        trainer --config run.toml --run.dir rms --train.optimizer rmsprop --train.rho 0.7 --train.warmup '6 steps' --train.warmup_from 0.4 --train.schedule polynomial --train.end_lr 0.005
        trainer --config run.toml --run.dir nadam --train.optimizer nadam --train.momentum_decay 0.01 --train.epsilon 1e-3 --train.lr_scaling linear --train.lr_reference_batch 60 --train.schedule exponential --train.decay_every '3 steps' --train.decay_factor 0.7
        trainer --config run.toml --run.dir ada --train.optimizer adafactor --train.beta2_decay 0.5 --train.schedule one_cycle --train.warmup_share 0.4
        trainer --config run.toml --run.dir muon --train.optimizer muon --train.adamw_lr_multiplier 0.1 --train.epsilon 1e-3 --train.schedule wsd --train.decay_share 0.5
        trainer --config run.toml --run.dir plateau --train.schedule plateau --train.plateau_patience '1 evaluations' --train.plateau_min_delta 10 --eval.every '3 steps' --train.lr_multiplier '0.*: 0.5' --eval.at_start true --report.html false
        trainer --config run.toml --run.dir focal --train.loss softmax_focal --train.focal_gamma 3 --train.keep best --train.early_stopping '2 evaluations' --train.early_stopping_min_delta 5 --eval.every '2 steps'
        trainer --config run.toml --run.dir from --train.init run/model.safetensors --train.init_partial true --model.layers 'dense(12) relu dense(5) relu dense(3)'
        ! trainer --config run.toml --run.dir other --train.init run/model.safetensors --model.layers 'dense(9) relu dense(3)'
        trainer --config run.toml --run.dir renamed --train.init run/model.safetensors --train.init_rename '0=0,2=2'
        trainer --config run.toml --run.dir nan --debug.nan_replica 1 --debug.nan_steps 3 --debug.nan_step 2 --train.on_nan skip --train.skip_limit 5
        ! trainer --config run.toml --run.dir many --debug.nan_replica 1 --debug.nan_steps 3 --debug.nan_step 2 --train.on_nan skip --train.skip_limit 2
        trainer --config run.toml --run.dir stars --train.lr_multiplier '0*: 0.3, *.b*s: 2' --train.class_weights balanced --train.weight_decay_multiplier '2.*: 0' --train.weight_decay 0.1
        trainer --config run.toml --run.dir quiet --run.progress none --run.time_limit '50 minutes' --data.synthetic_features 5 --data.synthetic_noise 0.9
        trainer compare run rms nadam ada muon plateau focal from renamed nan many quiet --all
        trainer report plateau focal nan --output page.html
        trainer status run many nan
        """, run=SYNTHETIC)
    yield case("keys/strategies", """
        mpirun -np 3 trainer --config run.toml --distribute.strategy parameter_server --distribute.servers 2 --distribute.bucket_kib 1 --train.replicas 1
        mpirun -np 2 trainer --config run.toml --run.dir async --distribute.strategy parameter_server --distribute.mode async --train.replicas 1 --distribute.staleness_lr true --distribute.reduction native
        mpirun -np 2 trainer --config run.toml --run.dir bounded --distribute.strategy parameter_server --distribute.mode bounded --distribute.staleness 2 --train.replicas 1 --distribute.reduction native
        mpirun -np 2 trainer --config run.toml --run.dir top_k --distribute.strategy allreduce --distribute.compression top_k --distribute.top_k 0.1 --distribute.reduction native --distribute.error_feedback false
        mpirun -np 2 trainer --config run.toml --run.dir fp16 --distribute.strategy allreduce --distribute.compression fp16 --distribute.reduction native --distribute.bucket_kib 1
        mpirun -np 4 trainer --config run.toml --run.dir tree --distribute.strategy allreduce --distribute.algorithm hierarchical --debug.ranks_per_node 2
        mpirun -np 2 trainer --config run.toml --run.dir local --distribute.strategy local_sgd --distribute.algorithm mpi --distribute.average_every 2 --distribute.average_state true --distribute.block_lr 0.8 --distribute.block_momentum 0.2 --distribute.block_nesterov true --train.momentum 0.9
        mpirun -np 4 trainer --config run.toml --run.dir stages --distribute.stages 2 --distribute.cut 1 --distribute.placement spread --distribute.strategy allreduce --distribute.algorithm mpi --checkpoint.every '6 steps'
        mpirun -np 4 trainer --config run.toml --run.dir more --distribute.stages 2 --distribute.cut 1 --distribute.placement spread --distribute.strategy allreduce --distribute.algorithm mpi --checkpoint.every '6 steps' --run.resume stages/checkpoints/step-000000012 --run.resume_allow train.epochs --train.epochs 3
        mpirun -np 2 trainer --config run.toml --run.dir one --run.resume stages --train.epochs 4 --run.resume_allow train.epochs,distribute.stages,distribute.cut,distribute.placement
        ! mpirun -np 2 trainer --config run.toml --run.dir flip --distribute.strategy allreduce --distribute.algorithm mpi --debug.flip_rank 1 --debug.flip_step 4 --comm.verify_every 3
        mpirun -np 3 trainer --config run.toml --run.dir heal --distribute.strategy allreduce --distribute.algorithm mpi --debug.flip_rank 1 --debug.flip_step 4 --comm.verify_every 3 --comm.on_desync rebroadcast --train.replicas 3
        ! mpirun -np 2 trainer --config run.toml --run.dir fails --debug.fail_rank 1 --debug.fail_step 3
        trainer plan --config run.toml --np 2,3,5 --distribute.strategy parameter_server --distribute.servers 1 --distribute.bucket_kib 1 --train.replicas 4
        trainer plan --config run.toml --np 2,4 --distribute.strategy zero1 --train.optimizer adam --distribute.bucket_kib 2
        mpirun -np 2 trainer --config run.toml --run.dir chunks --model.layers 'dense(9) relu dense(9) tanh dense(8) relu dense(3)' --distribute.stages 2 --distribute.schedule 'interleaved(2)' --distribute.strategy allreduce --distribute.algorithm mpi --report.histograms true --report.tensorboard true --train.optimizer adafactor
        trainer plan --config run.toml --np 2,4 --model.layers 'dense(64, split=rows) relu dense(3)' --distribute.strategy zero1 --train.optimizer lamb
        trainer plan --config run.toml --np 2,8 --distribute.strategy allreduce --distribute.algorithm rabenseifner --distribute.reduction native
        trainer plan --config run.toml --np 4 --distribute.strategy local_sgd --train.optimizer adam --distribute.average_state true --distribute.reduction native
        trainer plan --config run.toml --np 2,4,8 --distribute.stages 2 --distribute.strategy allreduce --train.optimizer adam --distribute.schedule gpipe
        trainer plan --config run.toml --np 4 --distribute.stages auto --distribute.memory_per_rank 0.00002 --distribute.strategy allreduce
        """, run=SYNTHETIC)


def of_ranks():
    for name, flags in {
        "allreduce": "--distribute.strategy allreduce --distribute.algorithm mpi",
        "ring": "--distribute.strategy allreduce --distribute.algorithm ring --distribute.reduction native",
        "bf16": "--distribute.strategy zero1 --distribute.reduction native --distribute.compression bf16",
        "zero1": "--distribute.strategy zero1 --train.optimizer adam --model.layers 'dense(12, split=rows) relu dense(3)'",
        "central_storage": "--distribute.strategy central_storage --train.ema 0.9",
        "parameter_server": "--distribute.strategy parameter_server",
        "local_sgd": "--distribute.strategy local_sgd --distribute.algorithm mpi --distribute.average_every 3 --distribute.block_momentum 0.3",
    }.items():
        yield case(f"ranks/{name}", f"""
            trainer plan --config run.toml {flags} --np 2,4 --run.plan full
            mpirun -np 2 trainer --config run.toml {flags} --run.plan full
            """, run=SYNTHETIC)
    tied = "dense(6) tanh dense(6) relu dense(6, tie=2) relu dense(6, tie=2) batch_norm(mode=averaged) dense(3)"
    yield case("ranks/stages", f"""
        trainer plan --config run.toml --model.layers '{tied}' --distribute.stages 2 --np 2,4
        mpirun -np 4 trainer --config run.toml --model.layers '{tied}' --distribute.stages 2 --distribute.schedule gpipe --distribute.strategy allreduce --distribute.algorithm mpi
        mpirun -np 4 trainer --config run.toml --run.dir three --model.layers '{tied}' --distribute.stages 4 --train.momentum 0.9 --distribute.strategy zero1
        ! mpirun -np 3 trainer --config run.toml --run.dir wrong --model.layers '{tied}' --distribute.stages 2
        mpirun -np 2 trainer eval --model run --json eval.json
        trainer eval --model three
        """, run=SYNTHETIC)
    yield case("ranks/resume", """
        mpirun -np 2 trainer --config run.toml --checkpoint.every '5 steps' --checkpoint.keep 2 --train.keep best
        rm -r run/checkpoints/step-000000020
        trainer eval --model run@step-15
        mpirun -np 3 trainer --config run.toml --checkpoint.every '5 steps' --checkpoint.keep 2 --train.keep best
        ! trainer --config run.toml --train.lr 0.1
        ! trainer --config run.toml --train.lr 0.1 --run.dir again --run.resume run/checkpoints/step-000000015
        trainer --config run.toml --train.lr 0.1 --run.dir again --run.resume run/checkpoints/step-000000015 --run.resume_allow train.lr
        trainer --config run.toml --run.resume restart --train.steps 5
        mkdir stopped && touch stopped/stop && trainer --config run.toml --run.dir stopped
        trainer --config run.toml --run.dir elsewhere --checkpoint.dir kept --train.init run/model.safetensors
        for model in run@best run@last again@last elsewhere@step-20; do trainer eval --model $model; done
        """, run=SYNTHETIC)
    yield case("ranks/not_finite", """
        ! trainer --config run.toml --debug.nan_replica 1 --debug.nan_step 6
        trainer --config run.toml --run.dir skip --debug.nan_replica 1 --debug.nan_step 6 --train.on_nan skip
        trainer status run skip
        trainer report run skip --output page.html
        """, run=SYNTHETIC)
    yield case("ranks/trace", """
        mpirun -np 2 trainer --config run.toml --report.trace 'first 3, last 2 steps' --model.layers 'dense(3)' --data.prefetch 0 --distribute.strategy allreduce --distribute.algorithm mpi
        trainer trace run
        trainer trace run --output trace.json.gz
        """, run=SYNTHETIC)
