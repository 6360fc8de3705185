-- key: id
SELECT id, user_id, status, discount, ship_by, note, ordered_at
FROM public.orders;
