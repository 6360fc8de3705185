SELECT i.order_id, i.line, i.product_id, i.quantity, v.status, v.country, t.orders, t.amount
FROM order_items i
JOIN order_users v ON v.id = i.order_id
JOIN order_totals t ON t.user_id = v.user_id;
