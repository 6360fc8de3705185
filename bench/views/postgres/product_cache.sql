SELECT
    p.id AS product_id,
    json_strip_nulls(json_build_object(
        'sku', p.sku,
        'name', p.name,
        'summary', substring(p.description, 1, 80),
        'price', p.price::text,
        'weight_kg', p.weight_kg::text,
        'in_stock', p.stock > 0 AND NOT p.discontinued,
        'stock', p.stock,
        'tags', p.tags,
        'attributes', p.attributes::text,
        'available_from', p.available_from,
        'updated_at', to_char(p.updated_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
        'orders', COALESCE(s.orders, 0),
        'pieces', COALESCE(s.pieces, 0),
        'revenue', s.revenue::text,
        'last_ordered_at', to_char(s.last_ordered_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
    ))::text AS document
FROM products p
LEFT JOIN (
    SELECT
        i.product_id,
        COUNT(DISTINCT o.id) AS orders,
        SUM(i.quantity) AS pieces,
        CAST(SUM(i.quantity * i.unit_price) AS DECIMAL(18, 2)) AS revenue,
        MAX(o.ordered_at) AS last_ordered_at
    FROM order_items i
    JOIN orders o ON o.id = i.order_id
    WHERE o.status <> 'cancelled'
    GROUP BY i.product_id
) s ON s.product_id = p.id;
