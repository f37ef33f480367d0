a: {inc: true, b: included}
fromi: nc
