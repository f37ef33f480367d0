"""Prints the messages of a topic exchange, one JSON list of routing key, content type, delivery mode and text a line."""

import json
import sys

import pika

port, exchange = int(sys.argv[1]), sys.argv[2]
channel = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", port)).channel()
channel.exchange_declare(exchange, "topic", durable=True)
queue = channel.queue_declare("", exclusive=True).method.queue
channel.queue_bind(queue, exchange, "#")
print(json.dumps("ready"), flush=True)
for method, properties, body in channel.consume(queue, auto_ack=True):
    print(json.dumps([method.routing_key, properties.content_type, properties.delivery_mode, body.decode()]), flush=True)
