"""A text, and the canary questions that are asked of it."""

SEPSIS = "Sepsis\n\nIn sepsis antibiotics should be given within one hour.\n"
CITED = """
[[canary]]
id = "sepsis-hour"
question = "Should antibiotics be given within one hour in sepsis?"
must = "cite"
documents = ["sepsis.txt"]
says = ["within one hour"]
"""
CANARIES = f"""{CITED}
[[canary]]
id = "no-malaria"
question = "Which medicine prevents malaria in travellers?"
must = "abstain"
"""
