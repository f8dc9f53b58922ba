"""Parameters of statements: a marker of each driver, and none in a quoted name."""

from dpselect.tables.statements import with_parameters


def test_parameters_get_the_drivers_marker_and_quoted_names_stay():
    statement = 'SELECT ":p1", "a"":p0" FROM t WHERE x < :p0 AND y > :p12'
    assert with_parameters(statement, lambda at: f"%(p{at})s") == (
        'SELECT ":p1", "a"":p0" FROM t WHERE x < %(p0)s AND y > %(p12)s'
    )
    assert with_parameters('SELECT "a:b"', str, lambda name: name.replace(":", "\\:")) == 'SELECT "a\\:b"'
