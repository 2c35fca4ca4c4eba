"""The notebooks: pages of the documentation, and in the package for `hmb notebooks`, which copies them out."""
