"""A Kafka server with one broker: the mock of librdkafka, which speaks Kafka's protocol over TCP and chooses its own port.

    kafka_server.py PORT

Connections to PORT are passed to it. Prints its own port; then, for each line on stdin with a topic and a number, that
number of messages of the topic from its beginning, in the order of partitions: a JSON list of partition, key and value a line.
"""

import json
import socket
import sys
import threading

import confluent_kafka

server = confluent_kafka.Producer({"bootstrap.servers": "mock", "test.mock.num.brokers": 1, "log_level": 0})
broker = next(iter(server.list_topics(timeout=30).brokers.values()))


def copy(source, target):
    try:
        while data := source.recv(65536):
            target.sendall(data)
    except OSError:
        pass
    for end in [source, target]:
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def accept(listener):
    while True:
        client, _ = listener.accept()
        other = socket.create_connection((broker.host, broker.port))
        for pair in [(client, other), (other, client)]:
            threading.Thread(target=copy, args=pair, daemon=True).start()


listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
threading.Thread(target=accept, args=(listener,), daemon=True).start()
print(json.dumps(broker.port), flush=True)
settings = {"bootstrap.servers": f"127.0.0.1:{broker.port}", "group.id": "reader", "enable.auto.commit": False}
for line in sys.stdin:
    topic, number = line.split()
    consumer = confluent_kafka.Consumer({**settings, "fetch.message.max.bytes": 200_000_000, "receive.message.max.bytes": 300_000_000})
    partitions = sorted(consumer.list_topics(topic, timeout=30).topics[topic].partitions)
    start = confluent_kafka.OFFSET_BEGINNING
    consumer.assign([confluent_kafka.TopicPartition(topic, partition, start) for partition in partitions])
    found = []
    while len(found) < int(number):
        message = consumer.poll(30)
        if message is None or message.error():
            print(json.dumps([-1, "", f"{len(found)} messages: {message and message.error()}"]), flush=True)
            break
        found.append((message.partition(), message.offset(), message.key().decode(), message.value().decode()))
    consumer.close()
    for partition, _, key, value in sorted(found):
        print(json.dumps([partition, key, value]), flush=True)
