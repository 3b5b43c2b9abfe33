"""Cases of compare-outputs: sweeps, folds, what looks at runs, second times, and errors."""

from .case import case, failing
from .cases_of_training import EXPORTS
from .configs import ARRAYS, IMAGES, PLAIN_TABLE, SYNTHETIC, TABLE


def of_searches():
    yield case("searches/sweep", """
        mpirun -np 2 trainer sweep --config run.toml --run.dir grid --grid train.lr=0.01,0.1 --grid 'model.layers=dense(3)|dense(0)' --ranks-per-trial 2
        trainer sweep --config run.toml --run.dir halving --random 'train.lr=log(1e-4,1e-1)' --random 'train.optimizer=choice(sgd|adam)' --trials 4 --halving 2 --train.epochs 4
        mpirun -np 2 trainer sweep --config run.toml --run.dir pair --grid train.lr=0.01,0.1,0.2 | sort
        ! trainer sweep --config run.toml --run.dir pair --grid train.lr=0.01
        trainer compare grid halving --sort train.lr
        trainer status grid
        trainer report halving --output page.html
        """, run=SYNTHETIC)
    yield case("searches/cv", """
        mpirun -np 2 trainer cv --config run.toml --run.dir cv --folds 3 --stratified --refit --ranks-per-trial 2 --data.test ''
        trainer cv --config run.toml --run.dir group --folds 2 --group customer --data.test '' --train.epochs 1 --train.calibrate temperature
        trainer cv --config run.toml --run.dir time --folds 2 --time joined --data.test '' --train.epochs 1
        trainer cv --config run.toml --run.dir column --folds 3 --fold-column part --data.test '' --train.epochs 1 --data.train data/people_bad.csv --data.on_bad_record skip --data.max_bad_share 0.1
        trainer compare cv group time column --csv compare.csv
        """, run=PLAIN_TABLE.replace('validation = "share(0.2)"\n', ""))


def of_runs():
    """One run with everything, and what looks at it."""
    yield case("runs/table", f"""
        trainer plan --config run.toml --np 1,2,4
        mpirun -np 2 trainer --config run.toml --run.plan full
        trainer eval --model run
        mpirun -np 2 trainer eval --model run --data.test data/people.csv --json eval.json
        trainer eval --model run@last --json - > last.eval.json
        trainer predict --model run --input data/people_test.csv --output test.csv --keep id,city
        trainer predict --model run --input data/people_bad.csv --output bad.csv
        mpirun -np 2 trainer predict --model run --input data/people_bad.csv --output bad.csv --overwrite --data.on_bad_record skip --data.max_bad_share 0.1
        trainer predict --model run --input data/people_test.csv --output test.jsonl --threshold 0.3
        trainer predict --model run --input data/people_test.csv --output test.npy --proba
        ! trainer predict --model run --input data/people_test.csv --output top.csv --top 2
        head -n 5 data/people_test.csv | trainer predict --model run --input - --output - --format jsonl
        ! trainer predict --model run --input data/new.csv --output new.csv
        for format in {EXPORTS}; do trainer export --model run --format $format --output model.$format; done
        ! trainer export --model run --format keras --output model.keras
        mpirun -np 2 trainer importance --model run --repeats 2 --csv importance.csv --json importance.json
        trainer importance --model run --metric log_loss --repeats 1
        trainer importance --model run --partial hours --points 5
        trainer importance --model run --partial city --json partial.json --csv partial.csv
        ! trainer importance --model run --partial none
        trainer --config run.toml --run.dir second --train.lr 0.01 --train.calibrate none --eval.threshold 0.4 --train.keep last --train.early_stopping ''
        trainer compare run second
        trainer compare run second --sort auc --csv compare.csv --json compare.json
        trainer status run second
        trainer watch run --once
        trainer watch run second --once
        trainer report run --output page.html
        trainer report run second --output pages.html
        ! trainer report run --output page.html
        trainer export-metrics run second --format csv --output metrics.csv
        trainer status run second --json status.json
        trainer watch run --once --json watch.json
        trainer report run second --json page.json
        trainer compare run second --all
        trainer compare run second --sort train.lr
        ! trainer compare run second --sort none
        trainer --config run/config.toml --run.dir third --train.epochs 1
        """, run=TABLE)
    yield case("runs/labels", """
        trainer --config run.toml
        trainer --config run.toml --run.dir yes --data.ignore id,joined,seen,stamp,zip,salary,rate,area,customer,part,persons,income,kind,price,visits --data.label t1,t2 --train.loss binary_cross_entropy --eval.metrics auc,brier,ece,f1 --data.columns ''
        trainer --config run.toml --run.dir number --data.label price --data.columns 'price: log' --model.layers 'dense(8) relu dense(1)'
        trainer --config run.toml --run.dir number --data.label price --data.columns 'price: log' --model.layers 'dense(8) relu dense(1)' --train.loss huber --run.resume restart
        for run in run yes number; do trainer eval --model $run; done
        for run in run yes number; do trainer predict --model $run --input data/people_test.csv --output $run.csv --keep id; done
        for run in run yes number; do trainer export --model $run --format onnx --output $run.onnx; done
        trainer importance --model number --metric r2 --repeats 2
        trainer --config run.toml --run.dir quantiles --train.loss quantile --train.quantiles 0.2,0.7 --model.layers 'dense(6) relu dense(4)'
        trainer importance --model quantiles --partial hours --points 3
        trainer importance --model run --partial city --csv -
        trainer compare run yes number
        """, run=PLAIN_TABLE.replace('label = ["kind"]', 'label = ["price", "visits"]\ncolumns = ["price: log", "visits: standard"]')
        .replace(', "kind"]', "]").replace('"price",\n  "visits", ', '"kind",\n  ').replace(', "t1", "t2"]', "]")
        .replace("dense(3)", "dense(2)").replace('optimizer = "adam"', 'optimizer = "adam"\nloss = "mean_squared_error"'))


def of_errors():
    yield case("errors/config", failing("""
        trainer --config run.toml --train.lrr 0.1
        trainer --config run.toml --train.lr fast
        trainer --config run.toml --train.lr -1
        trainer --config run.toml --train.optimizer adamm
        trainer --config run.toml --model.layers 'dense(12) relo dense(3)'
        trainer --config run.toml --model.layers 'dense(12) relu dense(2)'
        trainer --config run.toml --model.layers 'dense(12 relu'
        trainer --config run.toml --train.warmup '5 apples'
        trainer --config run.toml --train.ema 0.9 --train.swa_from '1 epochs'
        trainer --config run.toml --distribute.mode async
        trainer --config run.toml --eval.metrics r2
        trainer --config run.toml --train.class_weights '9: 2'
        trainer --config run.toml --data.synthetic_validation_rows 0 --train.calibrate temperature
        trainer --config run.toml --report.trace '3 steps'
        mpirun -np 2 trainer --config run.toml --train.batch_size 3
        trainer --config missing.toml
        trainer --config broken.toml
        trainer --config unknown.toml
        trainer plan --config run.toml --np 0
        trainer plann --config run.toml
        trainer eval --model nothing
        trainer eval
        trainer predict --model nothing --input x.csv
        trainer sweep --config run.toml
        trainer cv --config run.toml --folds 1
        trainer compare nothing
        trainer status nothing
        trainer watch nothing --once
        trainer trace nothing
        trainer report nothing --output page.html
        """), run=SYNTHETIC, broken="[train\nlr = 1", unknown="[train]\nlearning_rate = 0.1\n[modle]\nlayers = 3\n")
    yield case("errors/files", """
        ! trainer --config table.toml --data.train data/people_bad.csv
        ! mpirun -np 2 trainer --config table.toml --data.train data/people_bad.csv
        ! trainer --config table.toml --data.train data/people_bad.csv --data.on_bad_record skip
        ! trainer --config table.toml --data.train data/nothing.csv
        ! trainer --config table.toml --data.label none
        ! trainer --config table.toml --data.numeric age,hours,city
        trainer --config table.toml --data.test data/new.csv
        ! trainer --config table.toml --data.strict true --data.ignore id
        ! trainer --config arrays.toml --run.dir arrays --data.train data/short.npy
        ! trainer --config arrays.toml --run.dir arrays --data.train_labels data/small-labels.idx
        ! trainer --config arrays.toml --run.dir arrays --data.train_labels data/values.npy
        ! trainer --config arrays.toml --run.dir arrays --data.train data/arrays.npz:z
        ! trainer --config images.toml --run.dir arrays --data.train data/short-images.idx
        ! trainer --config images.toml --run.dir arrays --data.train_labels data/train-labels-idx1-ubyte.gz
        trainer --config table.toml
        ! head -c 300 run/model.safetensors > short && cp short run/model.safetensors && trainer eval --model run
        ! echo '{' > run/schema.json && trainer predict --model run --input data/new.csv --output new.csv
        ! trainer export --model run --format onnx --output model.onnx
        ! touch full && trainer --config table.toml --run.dir full
        """, table=PLAIN_TABLE, arrays=ARRAYS, images=IMAGES)


def of_damage():
    """What commands say of a run whose files are gone, cut off or not its own."""
    damages = {
        "gone": "rm $r/run.json",
        "cut": "head -n 9 run/run.json > $r/run.json",
        "metrics": "head -c 700 run/metrics.jsonl > $r/metrics.jsonl",
        "words": "sed -i 's/\"loss\"/\"lost\"/' $r/metrics.jsonl",
        "model": "rm $r/model.safetensors",
        "short": "head -c 500 run/model.safetensors > $r/model.safetensors",
        "schema": "rm $r/schema.json",
        "columns": "sed -i 's/\"age\"/\"aged\"/' $r/schema.json",
        "config": "sed -i 's/dense(12)/dense(7)/' $r/config.toml",
        "state": "head -c 100 run/checkpoints/*28/state-00000.bin > $(echo $r/checkpoints/*28/state-00000.bin)",
        "manifest": "rm $r/checkpoints/*/manifest.json",
        "summary": "echo '{}' > $r/summary.json",
    }
    looks = ["status $r", "compare run $r", "eval --model $r", "predict --model $r --input data/new.csv --output -", "trace $r",
             "report $r --output $r.html", "export --model $r --format npz --output $r.npz", "watch $r --once",
             "--config run.toml --run.dir $r --train.epochs 5 --run.resume_allow train.epochs"]
    commands = [f"r={name}; cp -r run $r; {damage}" for name, damage in damages.items()]
    commands += [f"for r in {' '.join(damages)}; do trainer {look}; echo $?; done" for look in looks]
    yield case("errors/runs", "\n".join(["trainer --config run.toml", *commands]), run=PLAIN_TABLE)
    yield case("errors/keys", failing("""
        trainer --config run.toml --data.validation 'share(1.5)'
        trainer --config run.toml --data.validation 'group(none, 0.2)'
        trainer --config run.toml --data.validation 'time(city, 0.2)'
        trainer --config run.toml --data.columns 'none: standard'
        trainer --config run.toml --data.numeric age,age
        trainer --config run.toml --data.label kind,kind
        trainer --config run.toml --data.label age --train.loss binary_cross_entropy
        trainer --config run.toml --data.weight city
        trainer --config run.toml --data.positive none --data.label income
        trainer --config run.toml --train.quantiles 0.9,0.1 --train.loss quantile
        trainer --config run.toml --train.class_weights 'none: 2'
        trainer --config run.toml --train.lr_multiplier '9.*: 2'
        trainer --config run.toml --train.schedule milestones
        trainer --config run.toml --train.milestones '5 steps'
        trainer --config run.toml --model.layers 'conv2d(3, 3) dense(3)'
        trainer --config run.toml --model.layers 'dropout(1.5) dense(3)'
        trainer --config run.toml --model.layers 'dense(3, ini=zero)'
        trainer --config run.toml --model.layers 'dense(12) dense(3, tie=0)'
        trainer --config run.toml --model.preset none
        trainer --config run.toml --model.layers 'lstm(4) dense(3)'
        trainer --config run.toml --distribute.stages 2
        trainer --config run.toml --distribute.strategy local_sgd --distribute.local_after '2 apples'
        trainer --config run.toml --eval.threshold 0.5
        trainer --config run.toml --checkpoint.every '3 steps' --checkpoint.keep -1
        trainer --config run.toml --run.resume nowhere
        trainer --config run.toml --train.init nowhere.safetensors
        trainer --config run.toml --train.early_stopping '2 evaluations' --train.early_stopping_metric speed
        trainer --config run.toml --report.trace 'last 3 steps, middle 2 steps'
        mpirun -np 3 trainer --config run.toml --train.replicas 2
        mpirun -np 2 trainer --config run.toml --distribute.strategy parameter_server --distribute.servers 2
        trainer sweep --config run.toml --run.dir s --grid train.lr=0.1,fast
        trainer sweep --config run.toml --run.dir s --grid train.lrr=0.1
        trainer sweep --config run.toml --run.dir s --random 'train.lr=log(1,0.1)' --trials 2
        trainer sweep --config run.toml --run.dir s --grid train.lr=0.1,0.2 --part 3/2
        trainer cv --config run.toml --run.dir c --folds 3 --group none
        trainer cv --config run.toml --run.dir c --folds 3 --group city --stratified
        trainer init data/people.csv --label kind --preset none --output -
        trainer plan --config run.toml --np 1,x
        trainer bench --config missing.toml
        trainer export-metrics nothing --output -
        trainer help --config run.toml --np 2 nothing at all
        """), run=PLAIN_TABLE)


def of_second_times():
    """What a command says where something is there already, or has been done in part."""
    yield case("searches/again", """
        trainer sweep --config run.toml --run.dir parts --grid train.lr=0.01,0.1,0.05 --part 1/2
        trainer sweep --config run.toml --run.dir parts --grid train.lr=0.01,0.1,0.05 --part 2/2 --json parts.sweep.json
        trainer sweep --config run.toml --run.dir parts --grid train.lr=0.01,0.1,0.05
        trainer sweep --config run.toml --run.dir parts --grid train.lr=0.01,0.1,0.05,0.2
        trainer sweep --config run.toml --run.dir mixed --grid 'model.layers=dense(3)|dense(2)' --grid train.momentum=0.5,0.9
        trainer sweep --config run.toml --run.dir drawn --random 'train.lr=uniform(0.01,0.2)' --random 'train.replicas=int(1,3)' --trials 3 --json drawn.sweep.json
        trainer sweep --config run.toml --run.dir rungs --grid train.lr=0.3,0.01,0.1,0.05,0.2,0.02 --halving 3 --train.epochs 9
        trainer status rungs
        trainer watch rungs --once
        trainer compare rungs drawn --sort loss
        trainer report mixed rungs --output page.html
        mpirun -np 3 trainer sweep --config run.toml --run.dir three --grid train.lr=0.1,0.2 --train.replicas 3 --ranks-per-trial 3
        """, run=SYNTHETIC.replace("epochs = 2", "epochs = 1"))
    yield case("searches/folds", """
        trainer cv --config run.toml --run.dir cv --folds 2 --json cv.sweep.json
        trainer cv --config run.toml --run.dir cv --folds 2
        ! trainer cv --config run.toml --run.dir cv --folds 3
        trainer cv --config number.toml --run.dir number --folds 2 --refit --json number.sweep.json
        trainer eval --model number/refit --data.test data/people_test.csv
        trainer status cv number
        trainer report cv --output page.html
        trainer predict --model cv/fold-0001 --input data/new.csv --output -
        """, run=PLAIN_TABLE.replace('validation = "share(0.2)"\n', "").replace('test = "data/people_test.csv"\n', "").replace("epochs = 4", "epochs = 1"),
               number=PLAIN_TABLE.replace('validation = "share(0.2)"\n', "").replace('label = ["kind"]', 'label = ["price"]')
               .replace('"city", "kind"]', '"city"]').replace('"price",', '"kind",').replace("dense(3)", "dense(1)").replace("epochs = 4", "epochs = 1")
               .replace('optimizer = "adam"', 'loss = "mean_squared_error"').replace('test = "data/people_test.csv"\n', ""))
    yield case("runs/again", """
        trainer --config run.toml --checkpoint.every never
        trainer --config run.toml
        trainer --config run.toml --train.epochs 5 --run.resume_allow train.epochs
        trainer --config run.toml --run.dir kept --checkpoint.every '3 steps' --checkpoint.keep 1 --report.tensorboard true --report.histograms true
        trainer --config run.toml --run.dir kept --train.epochs 3 --run.resume_allow train.epochs --checkpoint.every '3 steps'
        trainer --config run.toml --run.dir kept --train.epochs 4 --run.resume_allow train.epochs
        ! trainer --config run.toml --run.dir kept --train.epochs 1 --run.resume_allow train.epochs
        ! trainer --config run.toml --run.dir kept --run.resume never
        ! trainer --config run.toml --run.dir kept --train.lr 0.5
        ! trainer --config run.toml --run.dir kept --data.synthetic_classes 4 --model.layers 'dense(4)'
        mpirun -np 2 trainer --config run.toml --run.dir kept --run.resume restart --train.epochs 1
        trainer --config run.toml --run.dir from --run.resume kept.1 --train.epochs 5 --run.resume_allow train.epochs
        trainer --config run.toml --run.dir first --run.resume kept.1/checkpoints/step-000000040 --train.epochs 5 --run.resume_allow train.epochs
        trainer eval --model kept.1
        trainer compare run kept kept.1 from
        trainer export-metrics kept.1 from --output both.metrics.csv
        trainer export-metrics kept.1 --output metrics.csv
        ! trainer export-metrics kept.1 --output metrics.csv
        trainer watch kept.1 from run --once
        ! trainer trace kept.1
        """, run=SYNTHETIC)
