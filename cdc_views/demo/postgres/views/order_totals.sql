-- key: user_id
SELECT
    o.user_id,
    count(DISTINCT o.id) AS orders,
    count(*) AS lines,
    sum(i.quantity) AS pieces,
    sum(i.quantity * i.unit_price) AS amount,
    max(o.ordered_at) AS last_ordered_at
FROM public.orders o
JOIN public.order_items i ON i.order_id = o.id
WHERE o.status <> 'cancelled'
GROUP BY o.user_id;
