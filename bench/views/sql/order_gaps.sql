-- A window: each order with the time of the user's order before it.
CREATE MATERIALIZED VIEW order_gaps AS
SELECT id, user_id, ordered_at, LAG(ordered_at) OVER (PARTITION BY user_id ORDER BY ordered_at, id) AS previous_at
FROM orders;
