secret: hunter2
