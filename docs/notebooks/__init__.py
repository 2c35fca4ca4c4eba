"""The notebooks are pages of the documentation. This package contains them, so that `hmb notebooks` can copy them."""
