"""A peer: TensorFlow on Fashion-MNIST, one process or MultiWorkerMirroredStrategy with a worker for each rank.

  OMP_NUM_THREADS=1 mpirun -np 2 --bind-to core \
    scripts/peers/python --tensorflow scripts/peers/multi_worker_mirrored.py MODEL BATCH_PER_WORKER EPOCHS

MODEL is mlp or cnn. Prints one line: samples/s over all workers after twenty warm-up steps, and test accuracy."""
import json
import os
import sys
import time

RANK = int(os.environ.get('OMPI_COMM_WORLD_RANK', '0'))
SIZE = int(os.environ.get('OMPI_COMM_WORLD_SIZE', '1'))
os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'
if SIZE > 1:  # TensorFlow reads it when it is imported
    workers = [f'127.0.0.1:{24500 + worker}' for worker in range(SIZE)]
    os.environ['TF_CONFIG'] = json.dumps({'cluster': {'worker': workers}, 'task': {'type': 'worker', 'index': RANK}})

import fashion_mnist  # noqa: E402
import tensorflow as tf  # noqa: E402

STEPS_AT_A_TIME = 20  # in one call of a graph, which costs less than a call for each step


def conv_net():
    layers = tf.keras.layers
    return [layers.Conv2D(32, 3, padding='same', activation='relu'), layers.MaxPool2D(),
            layers.Conv2D(64, 3, padding='same', activation='relu'), layers.MaxPool2D(),
            layers.Flatten(), layers.Dense(128, 'relu'), layers.Dense(10)]


def dense_net():
    return [tf.keras.layers.Dense(256, 'relu'), tf.keras.layers.Dense(128, 'relu'), tf.keras.layers.Dense(10)]


MODELS = {'mlp': (dense_net, (784,)), 'cnn': (conv_net, (28, 28, 1))}


def batches(images, labels, global_batch):
    data = tf.data.Dataset.from_tensor_slices((images, labels))
    data = data.shuffle(len(images), seed=1).repeat().batch(global_batch, drop_remainder=True).prefetch(2)
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    return data.with_options(options)


def main():
    name, batch, epochs = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    tf.config.threading.set_intra_op_parallelism_threads(int(os.environ.get('OMP_NUM_THREADS', '1')))
    tf.config.threading.set_inter_op_parallelism_threads(2 if SIZE > 1 else 1)  # one of them waits for messages
    strategy = tf.distribute.MultiWorkerMirroredStrategy() if SIZE > 1 else tf.distribute.get_strategy()
    net, shape = MODELS[name]
    images, labels = fashion_mnist.load('train')
    tf.random.set_seed(0)
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.layers.Input(shape), *net()])
        optimizer = tf.keras.optimizers.SGD(0.05, 0.9)
        loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction='none')
    records = iter(strategy.experimental_distribute_dataset(batches(images.reshape(-1, *shape), labels, batch * SIZE)))

    def step(x, y):
        with tf.GradientTape() as tape:
            mean = tf.nn.compute_average_loss(loss(y, model(x, training=True)), global_batch_size=batch * SIZE)
        optimizer.apply_gradients(zip(tape.gradient(mean, model.trainable_variables), model.trainable_variables))

    @tf.function
    def some_steps(source):
        for _ in tf.range(STEPS_AT_A_TIME):
            strategy.run(step, args=next(source))

    calls = max(1, int(len(images) / SIZE // batch * epochs) // STEPS_AT_A_TIME - 1)
    some_steps(records)
    start = time.time()
    for _ in range(calls):
        some_steps(records)
    seconds = time.time() - start
    if RANK == 0:
        images, labels = fashion_mnist.load('t10k')
        right = (model(images.reshape(-1, *shape), training=False).numpy().argmax(1) == labels).sum()
        steps = calls * STEPS_AT_A_TIME
        print(f'tensorflow {tf.__version__} {name} ranks={SIZE} batch={batch} steps={steps + STEPS_AT_A_TIME} '
              f'samples_per_s={steps * batch * SIZE / seconds:.0f} accuracy={right / len(labels):.4f}', flush=True)
    os._exit(0)  # a worker that ends in order waits for the others, and complains of those that are gone


if __name__ == '__main__':
    main()
