SELECT
    o.user_id,
    COUNT(DISTINCT o.id) AS orders,
    COUNT(*) AS lines,
    SUM(i.quantity) AS pieces,
    CAST(SUM(i.quantity * i.unit_price) AS DECIMAL(18, 2)) AS amount,
    MAX(o.ordered_at) AS last_ordered_at
FROM orders o
JOIN order_items i ON i.order_id = o.id
WHERE o.status <> 'cancelled'
GROUP BY o.user_id;
