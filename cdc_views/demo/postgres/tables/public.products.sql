-- key: id
SELECT
    id, sku, name, description, price, weight_kg, stock, discontinued, tags, attributes::text AS attributes,
    available_from, updated_at
FROM public.products;
