"""Named views, one or more for each operator and for each trap, over three tables; all are maintained by keys."""

from __future__ import annotations

from typing import Final

from tests.unit.incremental.memory import Memory, State, Table
from tests.unit.incremental.played import declared, played, random_states

TABLES: Final = (
    Table("t", {"id": "bigint", "k": "int", "g": "int", "s": "text"}, ("id",)),
    Table("u", {"id": "int", "k": "bigint", "g": "int", "s": "text"}, ("id",)),
    Table("w", {"id": "bigint", "k": "int", "g": "int", "d": "decimal"}, ("id", "k")),
)

VIEWS: Final = {
    "much in parentheses": "SELECT t.id, t.g, q.s FROM ((t)) JOIN (((SELECT k, s FROM u) q)) ON t.id = q.k",
    "table in parentheses": "SELECT t.id, t.g, u.s FROM t JOIN (u) ON t.id = u.k",
    "joins in parentheses": "SELECT t.id, t.g, u.s FROM t JOIN (u JOIN (w) ON u.k = w.k) ON t.g = u.k",
    "first joins in parentheses": (
        "SELECT t.id, u.id AS o, w.id AS p FROM ((t JOIN u ON t.k = u.k) LEFT JOIN w ON w.k = u.k)"
    ),
    "left join with inner joins": (
        "SELECT t.id, u.id AS o, w.id AS p, t.s FROM t LEFT JOIN (u JOIN w ON w.k = u.k AND u.g > 0) ON t.k = u.k"
    ),
    "left join with left joins": (
        "SELECT t.id, u.id AS o, w.id AS p, x.id AS q FROM t LEFT JOIN (u LEFT JOIN (w JOIN t x ON x.id = w.id) "
        "ON w.k = u.k) ON t.k = u.k WHERE t.g > 0 OR x.id IS NULL"
    ),
    "right join with a left join": (
        "SELECT t.id, u.id AS o, w.id AS p FROM t RIGHT JOIN (u LEFT JOIN w ON w.k = u.k) ON t.k = u.k"
    ),
    "full join with an inner join": (
        "SELECT t.id, u.id AS o, w.id AS p FROM t FULL JOIN (u JOIN w ON w.k = u.k) ON t.k = u.k"
    ),
    "inner join with a left join": (
        "SELECT t.id, u.id AS o, w.id AS p FROM t JOIN (u LEFT JOIN w ON w.k = u.k) ON t.k = u.k"
    ),
    "semi join with an inner join": "SELECT t.id FROM t SEMI JOIN (u JOIN w ON w.k = u.k) ON t.k = u.k",
    "subquery in parentheses": (
        "SELECT t.id, q.id AS o, w.d FROM t LEFT JOIN ((SELECT id, k FROM u WHERE g > 0) q JOIN w ON w.k = q.k) "
        "ON t.k = q.k"
    ),
    "not in over a join that may be missing": (
        "SELECT t.id, u.id AS o FROM t LEFT JOIN (u JOIN w ON w.k = u.k) ON t.k = u.k "
        "WHERE NOT EXISTS (SELECT 1 FROM t x WHERE x.k = w.g)"
    ),
    "inner join below a join": (
        "SELECT t.id, q.g FROM t JOIN (SELECT u.id, u.g, u.k FROM u JOIN w ON u.k = w.k) q ON t.k = q.id"
    ),
    "inner join below a left join": (
        "SELECT t.id, q.g FROM t LEFT JOIN (SELECT u.id, u.g, u.k FROM u JOIN w ON u.k = w.k) q ON t.k = q.id"
    ),
    "left joins in a row": "SELECT t.id, u.id AS o, w.id AS p FROM t LEFT JOIN u ON t.k=u.k LEFT JOIN w ON w.g = u.g",
    "left join below a left join": (
        "SELECT t.id, q.o, q.p FROM t LEFT JOIN (SELECT u.id AS o, u.k, w.id AS p FROM u LEFT JOIN w ON w.g = u.g) q "
        "ON q.k = t.k"
    ),
    "right join, then inner join": (
        "SELECT u.id, w.id AS p, w.k, t.id AS q FROM t RIGHT JOIN u ON t.k = u.k JOIN w ON w.k = t.k"
    ),
    "full joins with merged columns": (
        "SELECT k, t.id, u.id AS o, w.id AS p FROM t FULL JOIN u USING (k) FULL JOIN w USING (k)"
    ),
    "groups of a merged column": "SELECT k, count(*) AS c FROM t FULL JOIN u USING (k) GROUP BY k",
    "full joins in a row": (
        "SELECT t.id, u.id AS o, w.id AS p, w.k FROM t FULL JOIN u ON t.k = u.k FULL JOIN w ON w.g = u.g"
    ),
    "full joins with a further condition": (
        "SELECT t.id, u.id AS o, w.id AS p, w.k FROM t FULL JOIN u ON t.k = u.k FULL JOIN w ON w.g = t.g AND w.k <> t.k"
    ),
    "columns under other names": "SELECT id, b FROM t AS z(id, b, c, e) WHERE EXISTS (SELECT 1 FROM u WHERE u.k = b)",
    "alias that shadows a column": "SELECT max(g) AS k, count(*) AS c, k AS kk FROM t GROUP BY k",
    "columns in other case": "SELECT ID, T.K, (SELECT max(g) FROM u WHERE k = t.K) AS m FROM t",
    "join in which null equals null": "SELECT t.id, u.id AS o FROM t JOIN u ON t.s IS NOT DISTINCT FROM u.s",
    "joins in which null equals null": (
        "SELECT t.id, u.id AS o, w.id AS p, w.k FROM t JOIN u ON t.k IS NOT DISTINCT FROM u.k AND t.s = u.s JOIN w ON "
        "w.k = t.k AND w.g IS NOT DISTINCT FROM u.g"
    ),
    "left join in which null equals null": (
        "SELECT t.id, t.s, u.id AS o FROM t LEFT JOIN u ON t.s IS NOT DISTINCT FROM u.s AND u.g > 0"
    ),
    "right join in which null equals null": (
        "SELECT u.id, u.s, count(t.id) AS n FROM t RIGHT JOIN u ON t.s IS NOT DISTINCT FROM u.s GROUP BY u.id, u.s"
    ),
    "full join in which null equals null": "SELECT t.id, u.id AS o FROM t FULL JOIN u ON t.s IS NOT DISTINCT FROM u.s",
    "full join in which null equals null, with a further condition": (
        "SELECT t.id, u.id AS o, u.g FROM t FULL JOIN u ON t.k IS NOT DISTINCT FROM u.k AND t.g <> u.g"
    ),
    "semi join in which null equals null": "SELECT id, k FROM t SEMI JOIN u ON t.k IS NOT DISTINCT FROM u.k",
    "anti join in which null equals null": "SELECT id, k FROM t ANTI JOIN u ON t.k IS NOT DISTINCT FROM u.k",
    "exists in which null equals null": (
        "SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.s IS NOT DISTINCT FROM t.s AND u.g = 1)"
    ),
    "number of rows in which null equals null": (
        "SELECT id, (SELECT count(*) FROM u JOIN w ON w.k = u.k WHERE u.g IS NOT DISTINCT FROM t.g) AS n FROM t"
    ),
    "groups joined where null equals null": (
        "SELECT q.s, t.id FROM (SELECT s, count(*) AS n FROM u GROUP BY s) q JOIN t ON t.s IS NOT DISTINCT FROM q.s"
    ),
    "set operation joined where null equals null": (
        "SELECT q.k, w.id, w.g FROM (SELECT k FROM t UNION SELECT k FROM u) q JOIN w ON w.g IS NOT DISTINCT FROM q.k"
    ),
    "joined in where, and null equals null": (
        "SELECT t.id, w.id AS o, w.k FROM t, w WHERE t.g IS NOT DISTINCT FROM w.g AND t.id > 0"
    ),
    "not and or of exists": (
        "SELECT id FROM t WHERE NOT (EXISTS (SELECT 1 FROM u WHERE u.k = t.k) OR EXISTS (SELECT 1 FROM w WHERE w.g = "
        "t.g))"
    ),
    "in or in": "SELECT id, g FROM t WHERE k IN (SELECT k FROM u) OR g IN (SELECT DISTINCT g FROM w WHERE d IS NULL)",
    "in of two columns": (
        "SELECT id, s FROM t WHERE k IS NOT NULL AND g IS NOT NULL AND (k, g) IN (SELECT k, g FROM u WHERE k IS NOT "
        "NULL AND g IS NOT NULL)"
    ),
    "in of a column and an expression": (
        "SELECT id, s FROM t WHERE k IS NOT NULL AND g IS NOT NULL AND (g + 1, t.k) IN (SELECT id, k FROM w WHERE "
        "d > 0)"
    ),
    "not in of two columns": (
        "SELECT id, s FROM t WHERE k IS NOT NULL AND (g = 2 OR (id, k) NOT IN (SELECT id, k FROM w WHERE g = 1))"
    ),
    "in of two columns of groups": (
        "SELECT id FROM t WHERE k IS NOT NULL AND (id, k) IN (SELECT id, k FROM w GROUP BY id, k HAVING max(g) > 0)"
    ),
    "in groups": "SELECT id FROM t WHERE k IN (SELECT k FROM u GROUP BY k HAVING count(*) > 1)",
    "not in with a correlation": "SELECT id, k FROM t WHERE k NOT IN (SELECT u.k FROM u WHERE u.g = t.g)",
    "not in over keys": "SELECT id, g FROM t WHERE id NOT IN (SELECT id FROM w WHERE g = 1)",
    "not in over values that are not null": (
        "SELECT id, g FROM t WHERE NOT (k IN (SELECT k FROM u WHERE NOT k IS NULL) OR s = 'a') AND k IS NOT NULL"
    ),
    "not in over groups": "SELECT id FROM t WHERE id NOT IN (SELECT k FROM w GROUP BY k HAVING count(*) > 1)",
    "not in over the kept side": (
        "SELECT q.id FROM (SELECT t.id, u.id AS o FROM t LEFT JOIN u ON u.k = t.k) q WHERE q.id NOT IN (SELECT id FROM "
        "u)"
    ),
    "in within case": (
        "SELECT id, g FROM t WHERE CASE WHEN id IN (SELECT k FROM w) THEN g = 1 ELSE NOT id IN (SELECT id FROM u) END"
    ),
    "limit in a subquery": "SELECT id, (SELECT g FROM u WHERE u.k = t.k ORDER BY id LIMIT 1) AS f FROM t",
    "lateral with limit": (
        "SELECT t.id, l.id AS o FROM t CROSS JOIN LATERAL (SELECT u.id FROM u WHERE u.k = t.k ORDER BY u.id LIMIT 1) l"
    ),
    "left lateral": (
        "SELECT t.id, l.id AS o FROM t LEFT JOIN LATERAL (SELECT u.id FROM u WHERE u.k = t.k ORDER BY u.id LIMIT 1) l "
        "ON TRUE"
    ),
    "rows without a match": "SELECT t.id FROM t LEFT JOIN u ON t.k = u.k WHERE u.id IS NULL",
    "condition after a left join": "SELECT t.id, u.id AS o FROM t LEFT JOIN u ON t.k = u.k WHERE u.g = t.g",
    "comma": "SELECT t.id, q.id AS o FROM t, (SELECT w.id, w.k FROM w LEFT JOIN u ON u.k = w.k) q WHERE t.k = q.k",
    "groups joined with distinct rows": (
        "SELECT a.k, b.c FROM (SELECT DISTINCT k, g FROM t) a JOIN (SELECT k, count(*) AS c FROM u GROUP BY k) b ON "
        "a.k = b.k"
    ),
    "cte of groups twice": (
        "WITH c AS (SELECT k, g, count(*) AS n FROM t GROUP BY k, g) SELECT a.k, a.g, b.g AS g2, a.n FROM c a JOIN c "
        "b ON a.k = b.k AND a.n <= b.n"
    ),
    "cte with the name of its table": (
        "WITH t AS (SELECT id, k, g FROM t WHERE k = 1) SELECT id, g, (SELECT count(*) FROM t z WHERE z.g = t.g) AS n "
        "FROM t"
    ),
    "cte of a cte": (
        "WITH c AS (SELECT id, k FROM t), d AS (SELECT c.id, c.k FROM c JOIN u ON u.k = c.k) SELECT c.id, d.k FROM c "
        "JOIN d ON c.id = d.id WHERE EXISTS (SELECT 1 FROM d x WHERE x.k = c.k)"
    ),
    "union of joins": "SELECT t.id, u.id AS o FROM t JOIN u ON t.k = u.k UNION SELECT w.id, w.k FROM w",
    "union all of joins": "SELECT t.id, u.id AS o FROM t JOIN u ON t.k = u.k UNION ALL SELECT w.id, w.k FROM w",
    "except all of joins": "SELECT t.id, u.id AS o FROM t JOIN u ON t.k = u.k EXCEPT ALL SELECT w.id, w.k FROM w",
    "intersect all of a union all": (
        "SELECT k, g FROM t INTERSECT ALL (SELECT k, g FROM u UNION ALL SELECT k, g FROM w)"
    ),
    "window over groups": (
        "SELECT k, g, count(*) AS c, rank() OVER (PARTITION BY k ORDER BY count(*)) AS r FROM t GROUP BY k, g"
    ),
    "windows that share a column": (
        "SELECT id, k, rank() OVER (PARTITION BY k ORDER BY id) AS a, rank() OVER (PARTITION BY g, k ORDER BY id) AS "
        "b FROM t"
    ),
    "having with subqueries": (
        "SELECT k, count(*) AS c FROM t GROUP BY k HAVING count(*) > 0 AND EXISTS (SELECT 1 FROM w WHERE w.k = t.k)"
    ),
    "exists in exists": (
        "SELECT id, g FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND EXISTS (SELECT 1 FROM w WHERE w.k = "
        "t.g AND w.g = u.g))"
    ),
    "relational division": (
        "SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND NOT EXISTS (SELECT 1 FROM w WHERE w.g "
        "= u.g AND w.k = u.k))"
    ),
    "subquery as a value": (
        "SELECT q.id, q.m FROM (SELECT id, k, (SELECT max(g) FROM u WHERE u.k = t.k) AS m FROM t) q WHERE q.m >= 1"
    ),
    "groups of a subquery": (
        "SELECT q.k, max(q.m) AS m FROM (SELECT id, k, (SELECT count(*) FROM u WHERE u.g = t.g) AS m FROM t) q GROUP "
        "BY q.k"
    ),
    "anti join below a left join": (
        "SELECT q.g, count(*) AS c FROM (SELECT id, g FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k)) q "
        "LEFT JOIN w ON w.g = q.g GROUP BY q.g"
    ),
    "groups of a left join": "SELECT t.g, count(*) AS c, count(u.id) AS n FROM t LEFT JOIN u ON t.k = u.k GROUP BY t.g",
    "groups of both sides": "SELECT t.g, u.g AS h, count(*) AS c FROM t LEFT JOIN u ON t.k = u.k GROUP BY t.g, u.g",
    "groups of a full join": "SELECT t.g, u.g AS h, count(*) AS c FROM t FULL JOIN u ON t.k = u.k GROUP BY t.g, u.g",
    "distinct rows of a full join": "SELECT DISTINCT t.g, u.g AS h FROM t FULL JOIN u ON t.k = u.k",
    "bag of a full join": "SELECT t.g, u.g AS h FROM t FULL JOIN u ON t.k = u.k AND t.s = u.s",
    "full join by three conditions": (
        "SELECT t.id, u.id AS o FROM t FULL JOIN u ON t.k = u.k AND t.s = u.s AND t.g <> u.g"
    ),
    "joins of three tables": "SELECT t.id, u.id AS o, w.id AS p, w.k FROM t JOIN u ON t.k = u.k JOIN w ON w.g = t.g",
    "bag of three tables": "SELECT t.g, w.k FROM t JOIN u ON t.k = u.k JOIN w ON w.g = u.g",
    "distinct rows of three tables": "SELECT DISTINCT t.g, w.k FROM t JOIN u ON t.k = u.k JOIN w ON w.g = u.g",
    "left join of an inner join": "SELECT t.g, w.k FROM t JOIN u ON t.k = u.k LEFT JOIN w ON w.g = u.g AND w.k = t.id",
    "right join, then left join, merged": "SELECT k, t.g FROM t RIGHT JOIN u USING (k) LEFT JOIN w USING (k)",
    "full join, then inner join, merged": "SELECT k, w.id FROM t FULL JOIN u USING (k) JOIN w USING (k)",
    "full join on the optional side": (
        "SELECT k, w.id, w.g FROM w LEFT JOIN (SELECT k, t.id AS a, u.id AS b FROM t FULL JOIN u USING (k)) q USING (k)"
    ),
    "full join without merge on the optional side": (
        "SELECT q.a, q.b, w.id FROM w LEFT JOIN (SELECT t.k, t.id AS a, u.id AS b FROM t FULL JOIN u ON t.k = u.k) q "
        "ON q.k = w.k"
    ),
    "full join below an inner join": (
        "SELECT q.a, q.b, w.id, w.k FROM w JOIN (SELECT u.k, t.id AS a, u.id AS b FROM t FULL JOIN u ON t.k = u.k AND "
        "t.g = u.g) q ON q.k = w.k"
    ),
    "self join": "SELECT a.id, b.id AS o FROM t a JOIN t b ON a.k = b.g",
    "self join three times": (
        "SELECT a.id, b.id AS o, c.id AS p FROM t a JOIN t b ON a.k = b.g JOIN t c ON c.k = b.k AND c.g = a.g"
    ),
    "left self join": "SELECT a.id, b.id AS o FROM t a LEFT JOIN t b ON a.k = b.g AND a.id = b.k AND b.id <> a.id",
    "columns that change names": "SELECT q.k, q.g FROM (SELECT k AS g, g AS k FROM t) q JOIN u ON u.k = q.k",
    "distinct without a column": "SELECT k, g FROM (SELECT DISTINCT k, g, s FROM t) q",
    "groups without a column": "SELECT g, s FROM (SELECT k, g, s, count(*) AS n FROM t GROUP BY k, g, s) q WHERE n > 1",
    "union below exists": (
        "SELECT q.id FROM (SELECT id, k FROM t UNION SELECT id, k FROM u) q WHERE EXISTS (SELECT 1 FROM w WHERE w.k = "
        "q.k)"
    ),
    "union joined with except": (
        "SELECT q.id, q.k FROM (SELECT id, k FROM t UNION SELECT id, k FROM u) q LEFT JOIN (SELECT k, g FROM w EXCEPT "
        "SELECT k, g FROM t) r ON r.k = q.k"
    ),
    "except joined with except": (
        "SELECT q.id, q.k, r.g FROM (SELECT id, k FROM t EXCEPT SELECT id, k FROM u) q JOIN (SELECT k, g FROM w "
        "EXCEPT SELECT k, g FROM t) r ON r.k = q.k"
    ),
    "union all in a scalar subquery": (
        "SELECT t.id, (SELECT max(q.g) FROM (SELECT k, g FROM u UNION ALL SELECT k, g FROM w) q WHERE q.k = t.k) AS m "
        "FROM t"
    ),
    "left join in exists": (
        "SELECT t.id, EXISTS (SELECT 1 FROM u LEFT JOIN w ON w.k = u.k WHERE u.g = t.g AND w.id IS NULL) AS m FROM t"
    ),
    "groups of except all": (
        "SELECT t.id, t.k, q.n FROM t JOIN (SELECT k, count(*) AS n FROM (SELECT k, g FROM u EXCEPT ALL SELECT k, g "
        "FROM w) z GROUP BY k) q ON q.k = t.k"
    ),
    "joins in a scalar subquery": (
        "SELECT t.id, (SELECT count(*) FROM u, w WHERE u.k = w.k AND u.g = t.g AND w.id = t.id) AS m FROM t"
    ),
    "group by an expression": "SELECT upper(s) AS x, count(*) AS c, max(g) AS m FROM t GROUP BY upper(s)",
    "group by an expression that NULL has": "SELECT coalesce(s, 'a') AS x, sum(g) AS m FROM t GROUP BY 1",
    "group by two expressions": (
        "SELECT k + g AS x, coalesce(t.s, '') AS y, count(*) AS c FROM t GROUP BY x, coalesce(s, '') HAVING max(id) > 1"
    ),
    "group by an expression over a join": (
        "SELECT upper(u.s) AS x, count(*) AS c, max(w.d) AS m FROM t, u, w WHERE u.k = t.k AND w.k = t.k "
        "GROUP BY upper(u.s)"
    ),
    "group by an expression of each of two tables": (
        "SELECT upper(u.s) AS x, t.g + 1 AS y, max(u.s) AS m FROM t JOIN u ON u.k = t.k GROUP BY upper(u.s), y"
    ),
    "group by an expression of the kept side": (
        "SELECT coalesce(t.s, 'a') AS x, count(u.id) AS c FROM t LEFT JOIN u ON u.k = t.k GROUP BY 1"
    ),
    "groups by an expression, joined": (
        "SELECT w.id, q.c, q.x FROM w LEFT JOIN (SELECT k + g AS x, count(*) AS c FROM t GROUP BY k + g) q ON q.x = w.k"
    ),
    "distinct expressions": "SELECT DISTINCT k + g AS x FROM t WHERE s IS NOT NULL",
    "expression alone": "SELECT upper(s) AS x FROM t",
    "expressions alone": "SELECT k + g AS x, upper(s) AS y FROM t WHERE g IS NOT NULL",
    "expression alone, of a left join": "SELECT upper(t.s) AS x FROM t LEFT JOIN u ON u.k = t.k",
    "expression alone, of each of two tables": "SELECT t.k + 1 AS x, upper(u.s) AS y FROM t JOIN u ON u.k = t.k",
    "union all of expressions": "SELECT upper(s) AS x FROM t UNION ALL SELECT upper(s) FROM u",
    "except all of expressions": "SELECT upper(s) AS x FROM t EXCEPT ALL SELECT coalesce(s, 'A') FROM u",
    "intersect of expressions": "SELECT k + g AS x FROM t INTERSECT SELECT g + 1 FROM w",
    "union of columns and expressions": "SELECT k AS x, g + 1 AS y FROM t UNION SELECT g + 1, k FROM w",
    "join of an expression in a derived table": (
        "SELECT w.id, w.k, q.o, q.x FROM w JOIN (SELECT id AS o, k + g AS x FROM t) q ON q.x = w.g"
    ),
    "left join of an expression in a CTE": (
        "WITH q AS (SELECT id AS o, upper(s) AS x FROM u WHERE k IS NOT NULL) SELECT t.id, q.o FROM t LEFT JOIN q ON "
        "q.x = t.s"
    ),
    "groups of an expression in a derived table": (
        "SELECT q.x, count(*) AS c, max(q.g) AS m FROM (SELECT upper(s) AS x, g FROM t) q GROUP BY q.x HAVING "
        "max(q.g) > 0"
    ),
    "groups of an expression in a union": (
        "SELECT q.x, max(q.g) AS m FROM (SELECT upper(s) AS x, g FROM t UNION SELECT upper(s), g FROM u) q GROUP BY q.x"
    ),
    "exists by an expression": "SELECT id, g FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.g = t.k + 1)",
    "not exists by an expression on both sides": (
        "SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE upper(u.s) = upper(t.s) AND u.k > t.k)"
    ),
    "value of a subquery by an expression": (
        "SELECT id, (SELECT max(u.k) FROM u WHERE coalesce(u.s, 'a') = t.s) AS m FROM t"
    ),
    "lateral by an expression": (
        "SELECT t.id, q.m FROM t LEFT JOIN LATERAL (SELECT max(w.id) AS m FROM w WHERE w.g = t.k + t.g) q ON true"
    ),
    "in of an expression on both sides": "SELECT id, k FROM t WHERE upper(s) IN (SELECT upper(s) FROM u WHERE g > 0)",
    "selected in": "SELECT id, g IS NOT NULL AND id IN (SELECT k FROM w WHERE g > 0) AS has FROM t",
    "selected in within case": (
        "SELECT id, CASE WHEN id NOT IN (SELECT k FROM w) THEN g ELSE k END AS c, upper(s) AS x FROM t"
    ),
    "windows that share no column": (
        "SELECT id, rank() OVER (PARTITION BY k ORDER BY id) AS a, sum(g) OVER (PARTITION BY s ORDER BY id) AS b FROM t"
    ),
    "windows of which some share a column": (
        "SELECT id, k, rank() OVER (PARTITION BY k, g ORDER BY id) AS a, max(id) OVER (PARTITION BY s) AS b, count(*) "
        "OVER (PARTITION BY g) AS c, min(id) OVER (PARTITION BY upper(s)) AS d FROM t"
    ),
    "windows that share no column, over a join": (
        "SELECT t.id, u.id AS o, count(*) OVER (PARTITION BY t.g) AS a, count(*) OVER (PARTITION BY u.g) AS b FROM t "
        "JOIN u ON u.k = t.k"
    ),
    "groups over windows that share no column": (
        "SELECT q.g, max(q.a) AS a, max(q.b) AS b FROM (SELECT g, rank() OVER (PARTITION BY k ORDER BY id) AS a, "
        "rank() OVER (PARTITION BY s ORDER BY id) AS b FROM t) q GROUP BY q.g"
    ),
    "window over an expression": (
        "SELECT id, upper(s) AS x, row_number() OVER (PARTITION BY upper(s) ORDER BY id) AS n FROM t"
    ),
    "expression in two branches": (
        "SELECT x, c FROM (SELECT upper(s) AS x, count(*) AS c FROM t GROUP BY upper(s)) q UNION SELECT upper(s), "
        "max(id) FROM u GROUP BY upper(s)"
    ),
    "expression in a CTE that is named twice": (
        "WITH q AS (SELECT k + g AS x, count(*) AS c FROM t GROUP BY k + g) SELECT a.x, a.c, b.c AS d FROM q a JOIN "
        "q b ON b.x = a.x"
    ),
    "join by expressions": "SELECT t.id, u.id AS o, u.k FROM t JOIN u ON upper(t.s) = upper(u.s) AND t.g <> u.g",
    "join by an expression and a column": (
        "SELECT t.id, w.id AS o, w.k, q.id AS p FROM t, w, u q WHERE t.k + 1 = w.g AND q.id = w.g"
    ),
    "left join by expressions": "SELECT t.id, u.id AS o, u.s FROM t LEFT JOIN u ON coalesce(t.k, 0) = coalesce(u.k, 1)",
    "full join by expressions": "SELECT t.id, u.id AS o FROM t FULL JOIN u ON coalesce(t.s, 'a') = coalesce(u.s, 'b')",
    "anti join by an expression": "SELECT t.id, t.s FROM t ANTI JOIN u ON upper(u.s) = upper(t.s) AND u.g > t.g",
    "self join by an expression": (
        "SELECT a.id, b.id AS o, count(*) AS c FROM t a JOIN t b ON upper(a.s) = b.s GROUP BY a.id, b.id"
    ),
    "joins by expressions on both sides of a left join": (
        "SELECT a.id, b.id AS o, w.id AS p, w.k FROM t a JOIN u b ON a.k + 1 = b.g LEFT JOIN w ON w.g = a.k + b.id "
        "AND w.k = a.g"
    ),
    "group by number": "SELECT count(*) AS c, k FROM t GROUP BY 2",
    "group by alias": "SELECT g AS x, count(*) AS c FROM t GROUP BY x",
    "qualify": "SELECT k FROM t QUALIFY row_number() OVER (PARTITION BY k ORDER BY id) = 1",
    "named window": "SELECT id, k, lag(g) OVER w AS l FROM t WINDOW w AS (PARTITION BY k ORDER BY id)",
    "window joined by another column": (
        "SELECT q.g, q.id, q.r, w.id AS p FROM (SELECT id, k, g, rank() OVER (PARTITION BY g ORDER BY id) AS r FROM "
        "t) q JOIN w ON w.k = q.k"
    ),
    "window left-joined by another column": (
        "SELECT q.g, q.id, q.r, w.d FROM (SELECT id, k, g, rank() OVER (PARTITION BY g ORDER BY id) AS r FROM t) q "
        "LEFT JOIN w ON w.k = q.k"
    ),
    "window over union all, left-joined": (
        "SELECT q.g, q.id, q.r, w.d FROM (SELECT id, k, g, rank() OVER (PARTITION BY g ORDER BY id) AS r FROM (SELECT "
        "id, k, g FROM t UNION ALL SELECT id, k, g FROM u) z) q LEFT JOIN w ON w.k = q.k"
    ),
    "window over except, left-joined": (
        "SELECT q.g, q.id, q.r, w.d FROM (SELECT id, k, g, rank() OVER (PARTITION BY g ORDER BY id) AS r FROM (SELECT "
        "id, k, g FROM t EXCEPT SELECT id, k, g FROM u) z) q LEFT JOIN w ON w.k = q.k"
    ),
    "window that is joined by a row": (
        "SELECT w.id, w.k, q.r FROM w LEFT JOIN (SELECT id, rank() OVER (PARTITION BY g ORDER BY id) AS r FROM t) q "
        "ON q.id = w.g"
    ),
    "ranks without the column of their partition": (
        "SELECT id, rank() OVER (PARTITION BY k ORDER BY g NULLS FIRST) AS r, sum(g) OVER (PARTITION BY k ORDER BY id) "
        "AS n FROM t"
    ),
    "first row of a partition that is not selected": (
        "SELECT t.id, u.id AS o FROM t JOIN u ON u.id = t.k QUALIFY row_number() OVER (PARTITION BY t.g ORDER BY t.s, "
        "t.id) = 1"
    ),
    "first rows of two columns that are not selected": (
        "SELECT w.id, w.k, t.id AS i FROM w JOIN t ON t.id = w.g QUALIFY row_number() OVER (PARTITION BY t.g, t.k "
        "ORDER BY w.id, w.k) <= 2"
    ),
    "window over a join without the columns of its partition": (
        "SELECT t.id, u.id AS o, count(*) OVER (PARTITION BY t.g, u.g) AS n FROM t JOIN u ON u.k = t.k"
    ),
    "window over a left join without the column of its partition": (
        "SELECT t.id, u.id AS o, rank() OVER (PARTITION BY t.g ORDER BY u.g NULLS FIRST) AS n FROM t LEFT JOIN u "
        "ON u.k = t.k"
    ),
    "window over union all without the column of its partition": (
        "SELECT q.id, rank() OVER (PARTITION BY q.g ORDER BY q.k NULLS FIRST) AS r FROM (SELECT id, k, g FROM t UNION "
        "ALL SELECT id, k, g FROM u) q"
    ),
    "window over a window by another column": (
        "SELECT q.id, rank() OVER (PARTITION BY q.g ORDER BY q.r) AS s FROM (SELECT id, g, rank() OVER (PARTITION BY k "
        "ORDER BY id) AS r FROM t) q"
    ),
    "groups over a window by another column": (
        "SELECT q.s, max(q.r) AS m FROM (SELECT s, rank() OVER (PARTITION BY g ORDER BY id) AS r FROM t) q GROUP BY q.s"
    ),
    "rows of a bag with a rank": "SELECT s, rank() OVER (PARTITION BY g ORDER BY k NULLS FIRST) AS r FROM t",
    "groups over a window": (
        "SELECT q.g, max(w.d) AS m FROM (SELECT id, k, g, rank() OVER (PARTITION BY g ORDER BY id) AS r FROM t) q "
        "LEFT JOIN w ON w.k = q.k WHERE q.r <= 2 GROUP BY q.g"
    ),
    "window over a merged full join": (
        "SELECT q.g, q.id, q.o FROM (SELECT g, t.id, u.id AS o, rank() OVER (PARTITION BY g ORDER BY t.id NULLS "
        "FIRST) AS r FROM t FULL JOIN u USING (g)) q LEFT JOIN w ON w.k = q.id"
    ),
    "window over a left join, joined": (
        "SELECT q.g, q.id, q.o FROM (SELECT t.g, t.id, u.id AS o, rank() OVER (PARTITION BY t.g ORDER BY t.id NULLS "
        "FIRST) AS r FROM t LEFT JOIN u USING (k)) q JOIN w ON w.k = q.o"
    ),
    "window rows by rank": (
        "SELECT id, k, rank() OVER (PARTITION BY k ORDER BY g NULLS FIRST) AS r, sum(g) OVER (PARTITION BY k ORDER BY "
        "id) AS n FROM t"
    ),
    "top rows": (
        "SELECT q.id, q.k FROM (SELECT id, k, row_number() OVER (PARTITION BY k ORDER BY g DESC NULLS LAST, id) AS r "
        "FROM t) q WHERE q.r <= 2"
    ),
    "filter and case": "SELECT id, CASE WHEN g > 1 THEN s END AS c FROM t WHERE s <> 'a' OR k IS NULL",
    "aggregates": (
        "SELECT k, count(*) FILTER (WHERE g = 1) AS f, count(DISTINCT s) AS n, max(g) AS m FROM t GROUP BY k HAVING "
        "count(*) > 1"
    ),
    "natural join": "SELECT k, q.h FROM t NATURAL JOIN (SELECT k, g AS h FROM u) q",
    "intersect": "SELECT k, g FROM t INTERSECT SELECT k, g FROM u",
    "except": "SELECT k, g FROM t EXCEPT SELECT k, g FROM u",
    "same table in both branches": "SELECT k FROM t WHERE g = 1 UNION ALL SELECT g FROM t WHERE k = 1",
}


def maintained(sql: str, *states: State) -> Memory:
    """A view that is maintained by keys through these states of the tables."""
    memory = declared(TABLES, sql)
    assert memory.views["v"].plan.keys is not None, memory.views["v"].plan.reason
    return played(memory, states)


def maintained_at_random(sql: str, seed: int) -> Memory:
    """A view that is maintained by keys through a random history."""
    return maintained(sql, *random_states(TABLES, seed))
