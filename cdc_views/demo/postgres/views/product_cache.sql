-- key: product_id
SELECT product_id, json_strip_nulls(row_to_json(document))::text AS document
FROM (SELECT id AS product_id FROM public.products) k
CROSS JOIN LATERAL (
    SELECT
        p.sku,
        p.name,
        left(p.description, 80) AS summary,
        p.price::text AS price,
        p.weight_kg::text AS weight_kg,
        p.stock > 0 AND NOT p.discontinued AS in_stock,
        p.stock,
        p.tags,
        p.attributes::text AS attributes,
        p.available_from,
        to_char(p.updated_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS updated_at,
        coalesce(s.orders, 0) AS orders,
        coalesce(s.pieces, 0) AS pieces,
        s.revenue::text AS revenue,
        to_char(s.last_ordered_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS last_ordered_at
    FROM public.products p
    LEFT JOIN (
        SELECT
            i.product_id,
            count(DISTINCT o.id) AS orders,
            sum(i.quantity) AS pieces,
            sum(i.quantity * i.unit_price) AS revenue,
            max(o.ordered_at) AS last_ordered_at
        FROM public.order_items i
        JOIN public.orders o ON o.id = i.order_id
        WHERE o.status <> 'cancelled'
        GROUP BY i.product_id
    ) s ON s.product_id = p.id
    WHERE p.id = k.product_id
) document;
