-- key: order_id, line
SELECT order_id, line, product_id, quantity, unit_price, gift
FROM public.order_items;
