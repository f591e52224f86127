"""Problems, overviews and error measures under policy graphs; the names for users are in `mechdesign.graphs`."""
