"""The laboratory: evaluation, multiple choice and training as in the papers. Nothing else imports it."""
