"""The registry of models: manifests, headers of model files, and what was added with which hash."""
