CREATE MATERIALIZED VIEW product_cache WITH (kind = 'cache', key = 'product_id') AS
SELECT id AS product_id, sku, description, price, stock
FROM products;
