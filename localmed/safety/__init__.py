"""What must be seen before anything else: danger to a patient, emergencies, text that speaks to a program."""
