-- One document a product, ready to serve. Money is text in it, as JSON numbers would lose digits in some
-- readers; times are text, as each system has its own idea of how JSON shows one.
CREATE MATERIALIZED VIEW product_cache WITH (kind = 'cache', key = 'product_id') AS
SELECT
    p.id AS product_id,
    to_json(named_struct(
        'sku', p.sku,
        'name', p.name,
        'summary', substring(p.description, 1, 80),
        'price', CAST(p.price AS STRING),
        'weight_kg', CAST(p.weight_kg AS STRING),
        'in_stock', p.stock > 0 AND NOT p.discontinued,
        'stock', p.stock,
        'tags', p.tags,
        'attributes', p.attributes,
        'available_from', p.available_from,
        'updated_at', date_format(p.updated_at, "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'"),
        'orders', COALESCE(s.orders, 0),
        'pieces', COALESCE(s.pieces, 0),
        'revenue', CAST(s.revenue AS STRING),
        'last_ordered_at', date_format(s.last_ordered_at, "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'")
    )) AS document
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
