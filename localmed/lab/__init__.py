"""What reproduces the papers: evaluation, multiple choice, training. Nothing else imports it."""
