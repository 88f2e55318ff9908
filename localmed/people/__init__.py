"""Who uses localmed: accounts, sign-in, tokens; and what they asked: history, feedback, reviews."""
