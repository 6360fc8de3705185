-- An inner join: each order with its user.
CREATE MATERIALIZED VIEW order_users AS
SELECT o.id, o.user_id, o.status, o.ordered_at, u.name, u.country
FROM orders o
JOIN users u ON u.id = o.user_id;
