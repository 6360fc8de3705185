-- key: product_id
SELECT id AS product_id, sku, description, price, stock FROM public.products;
