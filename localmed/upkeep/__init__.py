"""What an administrator runs: doctor, backup, restore, repair, content packs, incident, evidence, egress."""
