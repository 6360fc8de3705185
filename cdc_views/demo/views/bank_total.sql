-- One row that must never change: all the money of the bank, and in how many places it lies.
CREATE MATERIALIZED VIEW bank_total AS
SELECT CAST(SUM(balance) AS DECIMAL(18, 2)) AS total, COUNT(*) AS holdings
FROM (
    SELECT balance FROM accounts
    UNION ALL
    SELECT balance FROM savings
) holdings;
