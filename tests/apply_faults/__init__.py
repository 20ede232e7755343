"""Small environments, whole plans and real kills for the tests of `stackfix.apply`."""
