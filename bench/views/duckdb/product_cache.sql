SELECT
    p.id AS product_id,
    CAST(to_json({
        'sku': p.sku,
        'name': p.name,
        'summary': substring(p.description, 1, 80),
        'price': CAST(p.price AS VARCHAR),
        'weight_kg': CAST(p.weight_kg AS VARCHAR),
        'in_stock': p.stock > 0 AND NOT p.discontinued,
        'stock': p.stock,
        'tags': p.tags,
        'attributes': p.attributes,
        'available_from': p.available_from,
        'updated_at': strftime(CAST(p.updated_at AS TIMESTAMP), '%Y-%m-%dT%H:%M:%S.%fZ'),
        'orders': COALESCE(s.orders, 0),
        'pieces': COALESCE(s.pieces, 0),
        'revenue': CAST(s.revenue AS VARCHAR),
        'last_ordered_at': strftime(CAST(s.last_ordered_at AS TIMESTAMP), '%Y-%m-%dT%H:%M:%S.%fZ')
    }) AS VARCHAR) AS document
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
