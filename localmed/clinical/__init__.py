"""Clinical knowledge that rules use, as tables that a pharmacist or clinician can review, with one reader each.

Each ``*.toml`` says what it holds, who compiled it and when it was reviewed; the module of the same name reads it,
once and when it is first used, so that a command pays only for the tables that it needs. Facts come from anywhere,
wording and selection are our own. Every table is bounded and every reader takes time linear in the text. What a table
does not list is not seen: that nothing was found is no proof that nothing is there.
"""
