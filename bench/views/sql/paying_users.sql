-- A semi-join: the users with a paid order.
CREATE MATERIALIZED VIEW paying_users AS
SELECT u.id, u.name, u.country
FROM users u
WHERE EXISTS (SELECT 1 FROM orders o WHERE o.user_id = u.id AND o.status = 'paid');
