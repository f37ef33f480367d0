echo loud
