"""With a chat model: an answer is written from the sections, checked sentence by sentence, and only then shown."""
