-- Queries of TPC-DS, with the parameters and in the form that the tests of sqlglot have them (MIT License).

-- query 1
WITH customer_total_return
AS (SELECT sr_customer_sk AS ctr_customer_sk,
sr_store_sk AS ctr_store_sk,
Sum(sr_return_amt) AS ctr_total_return
FROM store_returns,
date_dim
WHERE sr_returned_date_sk = d_date_sk
AND d_year = 2001
GROUP BY sr_customer_sk,
sr_store_sk)
SELECT c_customer_id
FROM customer_total_return ctr1,
store,
customer
WHERE ctr1.ctr_total_return > (SELECT Avg(ctr_total_return) * 1.2
FROM customer_total_return ctr2
WHERE ctr1.ctr_store_sk = ctr2.ctr_store_sk)
AND s_store_sk = ctr1.ctr_store_sk
AND s_state = 'TN'
AND ctr1.ctr_customer_sk = c_customer_sk
ORDER BY c_customer_id
LIMIT 100;

-- query 3
SELECT dt.d_year,
item.i_brand_id brand_id,
item.i_brand brand,
Sum(ss_ext_discount_amt) sum_agg
FROM date_dim dt,
store_sales,
item
WHERE dt.d_date_sk = store_sales.ss_sold_date_sk
AND store_sales.ss_item_sk = item.i_item_sk
AND item.i_manufact_id = 427
AND dt.d_moy = 11
GROUP BY dt.d_year,
item.i_brand,
item.i_brand_id
ORDER BY dt.d_year,
sum_agg DESC,
brand_id
LIMIT 100;

-- query 6
SELECT a.ca_state state,
Count(*) cnt
FROM customer_address a,
customer c,
store_sales s,
date_dim d,
item i
WHERE a.ca_address_sk = c.c_current_addr_sk
AND c.c_customer_sk = s.ss_customer_sk
AND s.ss_sold_date_sk = d.d_date_sk
AND s.ss_item_sk = i.i_item_sk
AND d.d_month_seq = (SELECT DISTINCT ( d_month_seq )
FROM date_dim
WHERE d_year = 1998
AND d_moy = 7)
AND i.i_current_price > 1.2 * (SELECT Avg(j.i_current_price)
FROM item j
WHERE j.i_category = i.i_category)
GROUP BY a.ca_state
HAVING Count(*) >= 10
ORDER BY cnt
LIMIT 100;

-- query 7
SELECT i_item_id,
Avg(ss_quantity) agg1,
Avg(ss_list_price) agg2,
Avg(ss_coupon_amt) agg3,
Avg(ss_sales_price) agg4
FROM store_sales,
customer_demographics,
date_dim,
item,
promotion
WHERE ss_sold_date_sk = d_date_sk
AND ss_item_sk = i_item_sk
AND ss_cdemo_sk = cd_demo_sk
AND ss_promo_sk = p_promo_sk
AND cd_gender = 'F'
AND cd_marital_status = 'W'
AND cd_education_status = '2 yr Degree'
AND ( p_channel_email = 'N'
OR p_channel_event = 'N' )
AND d_year = 1998
GROUP BY i_item_id
ORDER BY i_item_id
LIMIT 100;

-- query 12
SELECT
i_item_id ,
i_item_desc ,
i_category ,
i_class ,
i_current_price ,
Sum(ws_ext_sales_price) AS itemrevenue ,
Sum(ws_ext_sales_price)*100/Sum(Sum(ws_ext_sales_price)) OVER (partition BY i_class) AS revenueratio
FROM web_sales ,
item ,
date_dim
WHERE ws_item_sk = i_item_sk
AND i_category IN ('Home',
'Men',
'Women')
AND ws_sold_date_sk = d_date_sk
AND d_date BETWEEN Cast('2000-05-11' AS DATE) AND (
Cast('2000-05-11' AS DATE) + INTERVAL '30' day)
GROUP BY i_item_id ,
i_item_desc ,
i_category ,
i_class ,
i_current_price
ORDER BY i_category ,
i_class ,
i_item_id ,
i_item_desc ,
revenueratio
LIMIT 100;

-- query 15
SELECT ca_zip,
Sum(cs_sales_price) AS "_col_1"
FROM catalog_sales,
customer,
customer_address,
date_dim
WHERE cs_bill_customer_sk = c_customer_sk
AND c_current_addr_sk = ca_address_sk
AND ( SUBSTRING(ca_zip, 1, 5) IN ( '85669', '86197', '88274', '83405',
'86475', '85392', '85460', '80348',
'81792' )
OR ca_state IN ( 'CA', 'WA', 'GA' )
OR cs_sales_price > 500 )
AND cs_sold_date_sk = d_date_sk
AND d_qoy = 1
AND d_year = 1998
GROUP BY ca_zip
ORDER BY ca_zip
LIMIT 100;

-- query 18
SELECT i_item_id,
ca_country,
ca_state,
ca_county,
Avg(Cast(cs_quantity AS NUMERIC(12, 2))) agg1,
Avg(Cast(cs_list_price AS NUMERIC(12, 2))) agg2,
Avg(Cast(cs_coupon_amt AS NUMERIC(12, 2))) agg3,
Avg(Cast(cs_sales_price AS NUMERIC(12, 2))) agg4,
Avg(Cast(cs_net_profit AS NUMERIC(12, 2))) agg5,
Avg(Cast(c_birth_year AS NUMERIC(12, 2))) agg6,
Avg(Cast(cd1.cd_dep_count AS NUMERIC(12, 2))) agg7
FROM catalog_sales,
customer_demographics cd1,
customer_demographics cd2,
customer,
customer_address,
date_dim,
item
WHERE cs_sold_date_sk = d_date_sk
AND cs_item_sk = i_item_sk
AND cs_bill_cdemo_sk = cd1.cd_demo_sk
AND cs_bill_customer_sk = c_customer_sk
AND cd1.cd_gender = 'F'
AND cd1.cd_education_status = 'Secondary'
AND c_current_cdemo_sk = cd2.cd_demo_sk
AND c_current_addr_sk = ca_address_sk
AND c_birth_month IN ( 8, 4, 2, 5,
11, 9 )
AND d_year = 2001
AND ca_state IN ( 'KS', 'IA', 'AL', 'UT',
'VA', 'NC', 'TX' )
GROUP BY rollup ( i_item_id, ca_country, ca_state, ca_county )
ORDER BY ca_country,
ca_state,
ca_county,
i_item_id
LIMIT 100;

-- query 19
SELECT i_brand_id brand_id,
i_brand brand,
i_manufact_id,
i_manufact,
Sum(ss_ext_sales_price) ext_price
FROM date_dim,
store_sales,
item,
customer,
customer_address,
store
WHERE d_date_sk = ss_sold_date_sk
AND ss_item_sk = i_item_sk
AND i_manager_id = 38
AND d_moy = 12
AND d_year = 1998
AND ss_customer_sk = c_customer_sk
AND c_current_addr_sk = ca_address_sk
AND SUBSTRING(ca_zip, 1, 5) <> SUBSTRING(s_zip, 1, 5)
AND ss_store_sk = s_store_sk
GROUP BY i_brand,
i_brand_id,
i_manufact_id,
i_manufact
ORDER BY ext_price DESC,
i_brand,
i_brand_id,
i_manufact_id,
i_manufact
LIMIT 100;

-- query 20
SELECT
i_item_id ,
i_item_desc ,
i_category ,
i_class ,
i_current_price ,
Sum(cs_ext_sales_price) AS itemrevenue ,
Sum(cs_ext_sales_price)*100/Sum(Sum(cs_ext_sales_price)) OVER (partition BY i_class) AS revenueratio
FROM catalog_sales ,
item ,
date_dim
WHERE cs_item_sk = i_item_sk
AND i_category IN ('Children',
'Women',
'Electronics')
AND cs_sold_date_sk = d_date_sk
AND d_date BETWEEN Cast('2001-02-03' AS DATE) AND (
Cast('2001-02-03' AS DATE) + INTERVAL '30' day)
GROUP BY i_item_id ,
i_item_desc ,
i_category ,
i_class ,
i_current_price
ORDER BY i_category ,
i_class ,
i_item_id ,
i_item_desc ,
revenueratio
LIMIT 100;

-- query 22
SELECT i_product_name,
i_brand,
i_class,
i_category,
Avg(inv_quantity_on_hand) qoh
FROM inventory,
date_dim,
item,
warehouse
WHERE inv_date_sk = d_date_sk
AND inv_item_sk = i_item_sk
AND inv_warehouse_sk = w_warehouse_sk
AND d_month_seq BETWEEN 1205 AND 1205 + 11
GROUP BY rollup( i_product_name, i_brand, i_class, i_category )
ORDER BY qoh,
i_product_name,
i_brand,
i_class,
i_category
LIMIT 100;

-- query 25
SELECT i_item_id,
i_item_desc,
s_store_id,
s_store_name,
Max(ss_net_profit) AS store_sales_profit,
Max(sr_net_loss) AS store_returns_loss,
Max(cs_net_profit) AS catalog_sales_profit
FROM store_sales,
store_returns,
catalog_sales,
date_dim d1,
date_dim d2,
date_dim d3,
store,
item
WHERE d1.d_moy = 4
AND d1.d_year = 2001
AND d1.d_date_sk = ss_sold_date_sk
AND i_item_sk = ss_item_sk
AND s_store_sk = ss_store_sk
AND ss_customer_sk = sr_customer_sk
AND ss_item_sk = sr_item_sk
AND ss_ticket_number = sr_ticket_number
AND sr_returned_date_sk = d2.d_date_sk
AND d2.d_moy BETWEEN 4 AND 10
AND d2.d_year = 2001
AND sr_customer_sk = cs_bill_customer_sk
AND sr_item_sk = cs_item_sk
AND cs_sold_date_sk = d3.d_date_sk
AND d3.d_moy BETWEEN 4 AND 10
AND d3.d_year = 2001
GROUP BY i_item_id,
i_item_desc,
s_store_id,
s_store_name
ORDER BY i_item_id,
i_item_desc,
s_store_id,
s_store_name
LIMIT 100;

-- query 26
SELECT i_item_id,
Avg(cs_quantity) agg1,
Avg(cs_list_price) agg2,
Avg(cs_coupon_amt) agg3,
Avg(cs_sales_price) agg4
FROM catalog_sales,
customer_demographics,
date_dim,
item,
promotion
WHERE cs_sold_date_sk = d_date_sk
AND cs_item_sk = i_item_sk
AND cs_bill_cdemo_sk = cd_demo_sk
AND cs_promo_sk = p_promo_sk
AND cd_gender = 'F'
AND cd_marital_status = 'W'
AND cd_education_status = 'Secondary'
AND ( p_channel_email = 'N'
OR p_channel_event = 'N' )
AND d_year = 2000
GROUP BY i_item_id
ORDER BY i_item_id
LIMIT 100;

-- query 27
SELECT i_item_id,
s_state,
Grouping(s_state) g_state,
Avg(ss_quantity) agg1,
Avg(ss_list_price) agg2,
Avg(ss_coupon_amt) agg3,
Avg(ss_sales_price) agg4
FROM store_sales,
customer_demographics,
date_dim,
store,
item
WHERE ss_sold_date_sk = d_date_sk
AND ss_item_sk = i_item_sk
AND ss_store_sk = s_store_sk
AND ss_cdemo_sk = cd_demo_sk
AND cd_gender = 'M'
AND cd_marital_status = 'D'
AND cd_education_status = 'College'
AND d_year = 2000
AND s_state IN ( 'TN', 'TN', 'TN', 'TN',
'TN', 'TN' )
GROUP BY rollup ( i_item_id, s_state )
ORDER BY i_item_id,
s_state
LIMIT 100;

-- query 29
SELECT i_item_id,
i_item_desc,
s_store_id,
s_store_name,
Avg(ss_quantity) AS store_sales_quantity,
Avg(sr_return_quantity) AS store_returns_quantity,
Avg(cs_quantity) AS catalog_sales_quantity
FROM store_sales,
store_returns,
catalog_sales,
date_dim d1,
date_dim d2,
date_dim d3,
store,
item
WHERE d1.d_moy = 4
AND d1.d_year = 1998
AND d1.d_date_sk = ss_sold_date_sk
AND i_item_sk = ss_item_sk
AND s_store_sk = ss_store_sk
AND ss_customer_sk = sr_customer_sk
AND ss_item_sk = sr_item_sk
AND ss_ticket_number = sr_ticket_number
AND sr_returned_date_sk = d2.d_date_sk
AND d2.d_moy BETWEEN 4 AND 4 + 3
AND d2.d_year = 1998
AND sr_customer_sk = cs_bill_customer_sk
AND sr_item_sk = cs_item_sk
AND cs_sold_date_sk = d3.d_date_sk
AND d3.d_year IN ( 1998, 1998 + 1, 1998 + 2 )
GROUP BY i_item_id,
i_item_desc,
s_store_id,
s_store_name
ORDER BY i_item_id,
i_item_desc,
s_store_id,
s_store_name
LIMIT 100;

-- query 32
SELECT
Sum(cs_ext_discount_amt) AS "excess discount amount"
FROM catalog_sales ,
item ,
date_dim
WHERE i_manufact_id = 610
AND i_item_sk = cs_item_sk
AND d_date BETWEEN '2001-03-04' AND (
Cast('2001-03-04' AS DATE) + INTERVAL '90' day)
AND d_date_sk = cs_sold_date_sk
AND cs_ext_discount_amt >
(
SELECT 1.3 * avg(cs_ext_discount_amt)
FROM catalog_sales ,
date_dim
WHERE cs_item_sk = i_item_sk
AND d_date BETWEEN '2001-03-04' AND (
cast('2001-03-04' AS date) + INTERVAL '90' day)
AND d_date_sk = cs_sold_date_sk )
LIMIT 100;

-- query 36
SELECT Sum(ss_net_profit) / Sum(ss_ext_sales_price) AS
gross_margin,
i_category,
i_class,
Grouping(i_category) + Grouping(i_class) AS
lochierarchy,
Rank()
OVER (
partition BY Grouping(i_category)+Grouping(i_class), CASE
WHEN Grouping(
i_class) = 0 THEN i_category END
ORDER BY Sum(ss_net_profit)/Sum(ss_ext_sales_price) ASC) AS
rank_within_parent
FROM store_sales,
date_dim d1,
item,
store
WHERE d1.d_year = 2000
AND d1.d_date_sk = ss_sold_date_sk
AND i_item_sk = ss_item_sk
AND s_store_sk = ss_store_sk
AND s_state IN ( 'TN', 'TN', 'TN', 'TN',
'TN', 'TN', 'TN', 'TN' )
GROUP BY rollup( i_category, i_class )
ORDER BY lochierarchy DESC,
CASE
WHEN lochierarchy = 0 THEN i_category
END,
rank_within_parent
LIMIT 100;

-- query 37
SELECT
i_item_id ,
i_item_desc ,
i_current_price
FROM item,
inventory,
date_dim,
catalog_sales
WHERE i_current_price BETWEEN 20 AND 20 + 30
AND inv_item_sk = i_item_sk
AND d_date_sk=inv_date_sk
AND d_date BETWEEN Cast('1999-03-06' AS DATE) AND (
Cast('1999-03-06' AS DATE) + INTERVAL '60' day)
AND i_manufact_id IN (843,815,850,840)
AND inv_quantity_on_hand BETWEEN 100 AND 500
AND cs_item_sk = i_item_sk
GROUP BY i_item_id,
i_item_desc,
i_current_price
ORDER BY i_item_id
LIMIT 100;

-- query 38
SELECT Count(*) AS "_col_0"
FROM (SELECT DISTINCT c_last_name,
c_first_name,
d_date
FROM store_sales,
date_dim,
customer
WHERE store_sales.ss_sold_date_sk = date_dim.d_date_sk
AND store_sales.ss_customer_sk = customer.c_customer_sk
AND d_month_seq BETWEEN 1188 AND 1188 + 11
INTERSECT
SELECT DISTINCT c_last_name,
c_first_name,
d_date
FROM catalog_sales,
date_dim,
customer
WHERE catalog_sales.cs_sold_date_sk = date_dim.d_date_sk
AND catalog_sales.cs_bill_customer_sk = customer.c_customer_sk
AND d_month_seq BETWEEN 1188 AND 1188 + 11
INTERSECT
SELECT DISTINCT c_last_name,
c_first_name,
d_date
FROM web_sales,
date_dim,
customer
WHERE web_sales.ws_sold_date_sk = date_dim.d_date_sk
AND web_sales.ws_bill_customer_sk = customer.c_customer_sk
AND d_month_seq BETWEEN 1188 AND 1188 + 11) hot_cust
LIMIT 100;

-- query 40
SELECT
w_state ,
i_item_id ,
Sum(
CASE
WHEN (
Cast(d_date AS DATE) < Cast ('2002-06-01' AS DATE)) THEN cs_sales_price - COALESCE(cr_refunded_cash,0)
ELSE 0
END) AS sales_before ,
Sum(
CASE
WHEN (
Cast(d_date AS DATE) >= Cast ('2002-06-01' AS DATE)) THEN cs_sales_price - COALESCE(cr_refunded_cash,0)
ELSE 0
END) AS sales_after
FROM catalog_sales
LEFT OUTER JOIN catalog_returns
ON (
cs_order_number = cr_order_number
AND cs_item_sk = cr_item_sk) ,
warehouse ,
item ,
date_dim
WHERE i_current_price BETWEEN 0.99 AND 1.49
AND i_item_sk = cs_item_sk
AND cs_warehouse_sk = w_warehouse_sk
AND cs_sold_date_sk = d_date_sk
AND d_date BETWEEN (Cast ('2002-06-01' AS DATE) - INTERVAL '30' day) AND (
cast ('2002-06-01' AS date) + INTERVAL '30' day)
GROUP BY w_state,
i_item_id
ORDER BY w_state,
i_item_id
LIMIT 100;

-- query 42
SELECT dt.d_year,
item.i_category_id,
item.i_category,
Sum(ss_ext_sales_price) AS "_col_3"
FROM date_dim dt,
store_sales,
item
WHERE dt.d_date_sk = store_sales.ss_sold_date_sk
AND store_sales.ss_item_sk = item.i_item_sk
AND item.i_manager_id = 1
AND dt.d_moy = 12
AND dt.d_year = 2000
GROUP BY dt.d_year,
item.i_category_id,
item.i_category
ORDER BY Sum(ss_ext_sales_price) DESC,
dt.d_year,
item.i_category_id,
item.i_category
LIMIT 100;

-- query 45
SELECT ca_zip,
ca_state,
Sum(ws_sales_price) AS "_col_2"
FROM web_sales,
customer,
customer_address,
date_dim,
item
WHERE ws_bill_customer_sk = c_customer_sk
AND c_current_addr_sk = ca_address_sk
AND ws_item_sk = i_item_sk
AND ( SUBSTRING(ca_zip, 1, 5) IN ( '85669', '86197', '88274', '83405',
'86475', '85392', '85460', '80348',
'81792' )
OR i_item_id IN (SELECT i_item_id
FROM item
WHERE i_item_sk IN ( 2, 3, 5, 7,
11, 13, 17, 19,
23, 29 )) )
AND ws_sold_date_sk = d_date_sk
AND d_qoy = 1
AND d_year = 2000
GROUP BY ca_zip,
ca_state
ORDER BY ca_zip,
ca_state
LIMIT 100;

-- query 52
SELECT dt.d_year,
item.i_brand_id brand_id,
item.i_brand brand,
Sum(ss_ext_sales_price) ext_price
FROM date_dim dt,
store_sales,
item
WHERE dt.d_date_sk = store_sales.ss_sold_date_sk
AND store_sales.ss_item_sk = item.i_item_sk
AND item.i_manager_id = 1
AND dt.d_moy = 11
AND dt.d_year = 1999
GROUP BY dt.d_year,
item.i_brand,
item.i_brand_id
ORDER BY dt.d_year,
ext_price DESC,
brand_id
LIMIT 100;

-- query 55
SELECT i_brand_id brand_id,
i_brand brand,
Sum(ss_ext_sales_price) ext_price
FROM date_dim,
store_sales,
item
WHERE d_date_sk = ss_sold_date_sk
AND ss_item_sk = i_item_sk
AND i_manager_id = 33
AND d_moy = 12
AND d_year = 1998
GROUP BY i_brand,
i_brand_id
ORDER BY ext_price DESC,
i_brand_id
LIMIT 100;

-- query 65
SELECT s_store_name,
i_item_desc,
sc.revenue,
i_current_price,
i_wholesale_cost,
i_brand
FROM store,
item,
(SELECT ss_store_sk,
Avg(revenue) AS ave
FROM (SELECT ss_store_sk,
ss_item_sk,
Sum(ss_sales_price) AS revenue
FROM store_sales,
date_dim
WHERE ss_sold_date_sk = d_date_sk
AND d_month_seq BETWEEN 1199 AND 1199 + 11
GROUP BY ss_store_sk,
ss_item_sk) sa
GROUP BY ss_store_sk) sb,
(SELECT ss_store_sk,
ss_item_sk,
Sum(ss_sales_price) AS revenue
FROM store_sales,
date_dim
WHERE ss_sold_date_sk = d_date_sk
AND d_month_seq BETWEEN 1199 AND 1199 + 11
GROUP BY ss_store_sk,
ss_item_sk) sc
WHERE sb.ss_store_sk = sc.ss_store_sk
AND sc.revenue <= 0.1 * sb.ave
AND s_store_sk = sc.ss_store_sk
AND i_item_sk = sc.ss_item_sk
ORDER BY s_store_name,
i_item_desc
LIMIT 100;

-- query 67
select *
from (select i_category
,i_class
,i_brand
,i_product_name
,d_year
,d_qoy
,d_moy
,s_store_id
,sumsales
,rank() over (partition by i_category order by sumsales desc) rk
from (select i_category
,i_class
,i_brand
,i_product_name
,d_year
,d_qoy
,d_moy
,s_store_id
,sum(coalesce(ss_sales_price*ss_quantity,0)) sumsales
from store_sales
,date_dim
,store
,item
where ss_sold_date_sk=d_date_sk
and ss_item_sk=i_item_sk
and ss_store_sk = s_store_sk
and d_month_seq between 1181 and 1181+11
group by rollup(i_category, i_class, i_brand, i_product_name, d_year, d_qoy, d_moy,s_store_id))dw1) dw2
where rk <= 100
order by i_category
,i_class
,i_brand
,i_product_name
,d_year
,d_qoy
,d_moy
,s_store_id
,sumsales
,rk
limit 100;

-- query 73
SELECT c_last_name,
c_first_name,
c_salutation,
c_preferred_cust_flag,
ss_ticket_number,
cnt
FROM (SELECT ss_ticket_number,
ss_customer_sk,
Count(*) cnt
FROM store_sales,
date_dim,
store,
household_demographics
WHERE store_sales.ss_sold_date_sk = date_dim.d_date_sk
AND store_sales.ss_store_sk = store.s_store_sk
AND store_sales.ss_hdemo_sk = household_demographics.hd_demo_sk
AND date_dim.d_dom BETWEEN 1 AND 2
AND ( household_demographics.hd_buy_potential = '>10000'
OR household_demographics.hd_buy_potential = '0-500' )
AND household_demographics.hd_vehicle_count > 0
AND CASE
WHEN household_demographics.hd_vehicle_count > 0 THEN
household_demographics.hd_dep_count /
household_demographics.hd_vehicle_count
ELSE NULL
END > 1
AND date_dim.d_year IN ( 2000, 2000 + 1, 2000 + 2 )
AND store.s_county IN ( 'Williamson County', 'Williamson County',
'Williamson County',
'Williamson County'
)
GROUP BY ss_ticket_number,
ss_customer_sk) dj,
customer
WHERE ss_customer_sk = c_customer_sk
AND cnt BETWEEN 1 AND 5
ORDER BY cnt DESC,
c_last_name ASC;

-- query 79
SELECT c_last_name,
c_first_name,
SUBSTRING(s_city, 1, 30) AS "_col_2",
ss_ticket_number,
amt,
profit
FROM (SELECT ss_ticket_number,
ss_customer_sk,
store.s_city,
Sum(ss_coupon_amt) amt,
Sum(ss_net_profit) profit
FROM store_sales,
date_dim,
store,
household_demographics
WHERE store_sales.ss_sold_date_sk = date_dim.d_date_sk
AND store_sales.ss_store_sk = store.s_store_sk
AND store_sales.ss_hdemo_sk = household_demographics.hd_demo_sk
AND ( household_demographics.hd_dep_count = 8
OR household_demographics.hd_vehicle_count > 4 )
AND date_dim.d_dow = 1
AND date_dim.d_year IN ( 2000, 2000 + 1, 2000 + 2 )
AND store.s_number_employees BETWEEN 200 AND 295
GROUP BY ss_ticket_number,
ss_customer_sk,
ss_addr_sk,
store.s_city) ms,
customer
WHERE ss_customer_sk = c_customer_sk
ORDER BY c_last_name,
c_first_name,
SUBSTRING(s_city, 1, 30),
profit
LIMIT 100;

-- query 82
SELECT
i_item_id ,
i_item_desc ,
i_current_price
FROM item,
inventory,
date_dim,
store_sales
WHERE i_current_price BETWEEN 63 AND 63+30
AND inv_item_sk = i_item_sk
AND d_date_sk=inv_date_sk
AND d_date BETWEEN Cast('1998-04-27' AS DATE) AND (
Cast('1998-04-27' AS DATE) + INTERVAL '60' day)
AND i_manufact_id IN (57,293,427,320)
AND inv_quantity_on_hand BETWEEN 100 AND 500
AND ss_item_sk = i_item_sk
GROUP BY i_item_id,
i_item_desc,
i_current_price
ORDER BY i_item_id
LIMIT 100;

-- query 84
SELECT c_customer_id AS customer_id,
c_last_name
|| ', '
|| c_first_name AS customername
FROM customer,
customer_address,
customer_demographics,
household_demographics,
income_band,
store_returns
WHERE ca_city = 'Green Acres'
AND c_current_addr_sk = ca_address_sk
AND ib_lower_bound >= 54986
AND ib_upper_bound <= 54986 + 50000
AND ib_income_band_sk = hd_income_band_sk
AND cd_demo_sk = c_current_cdemo_sk
AND hd_demo_sk = c_current_hdemo_sk
AND sr_cdemo_sk = cd_demo_sk
ORDER BY c_customer_id
LIMIT 100;

-- query 86
SELECT Sum(ws_net_paid) AS total_sum,
i_category,
i_class,
Grouping(i_category) + Grouping(i_class) AS lochierarchy,
Rank()
OVER (
partition BY Grouping(i_category)+Grouping(i_class), CASE
WHEN Grouping(
i_class) = 0 THEN i_category END
ORDER BY Sum(ws_net_paid) DESC) AS rank_within_parent
FROM web_sales,
date_dim d1,
item
WHERE d1.d_month_seq BETWEEN 1183 AND 1183 + 11
AND d1.d_date_sk = ws_sold_date_sk
AND i_item_sk = ws_item_sk
GROUP BY rollup( i_category, i_class )
ORDER BY lochierarchy DESC,
CASE
WHEN lochierarchy = 0 THEN i_category
END,
rank_within_parent
LIMIT 100;

-- query 87
select count(*) as "_col_0"
from ((select distinct c_last_name, c_first_name, d_date
from store_sales, date_dim, customer
where store_sales.ss_sold_date_sk = date_dim.d_date_sk
and store_sales.ss_customer_sk = customer.c_customer_sk
and d_month_seq between 1188 and 1188+11)
except
(select distinct c_last_name, c_first_name, d_date
from catalog_sales, date_dim, customer
where catalog_sales.cs_sold_date_sk = date_dim.d_date_sk
and catalog_sales.cs_bill_customer_sk = customer.c_customer_sk
and d_month_seq between 1188 and 1188+11)
except
(select distinct c_last_name, c_first_name, d_date
from web_sales, date_dim, customer
where web_sales.ws_sold_date_sk = date_dim.d_date_sk
and web_sales.ws_bill_customer_sk = customer.c_customer_sk
and d_month_seq between 1188 and 1188+11)
) cool_cust;

-- query 89
SELECT *
FROM (SELECT i_category,
i_class,
i_brand,
s_store_name,
s_company_name,
d_moy,
Sum(ss_sales_price) sum_sales,
Avg(Sum(ss_sales_price))
OVER (
partition BY i_category, i_brand, s_store_name, s_company_name
)
avg_monthly_sales
FROM item,
store_sales,
date_dim,
store
WHERE ss_item_sk = i_item_sk
AND ss_sold_date_sk = d_date_sk
AND ss_store_sk = s_store_sk
AND d_year IN ( 2002 )
AND ( ( i_category IN ( 'Home', 'Men', 'Sports' )
AND i_class IN ( 'paint', 'accessories', 'fitness' ) )
OR ( i_category IN ( 'Shoes', 'Jewelry', 'Women' )
AND i_class IN ( 'mens', 'pendants', 'swimwear' ) ) )
GROUP BY i_category,
i_class,
i_brand,
s_store_name,
s_company_name,
d_moy) tmp1
WHERE CASE
WHEN ( avg_monthly_sales <> 0 ) THEN (
Abs(sum_sales - avg_monthly_sales) / avg_monthly_sales )
ELSE NULL
END > 0.1
ORDER BY sum_sales - avg_monthly_sales,
s_store_name
LIMIT 100;

-- query 90
SELECT Cast(amc AS DECIMAL(15, 4)) / Cast(pmc AS DECIMAL(15, 4))
am_pm_ratio
FROM (SELECT Count(*) amc
FROM web_sales,
household_demographics,
time_dim,
web_page
WHERE ws_sold_time_sk = time_dim.t_time_sk
AND ws_ship_hdemo_sk = household_demographics.hd_demo_sk
AND ws_web_page_sk = web_page.wp_web_page_sk
AND time_dim.t_hour BETWEEN 12 AND 12 + 1
AND household_demographics.hd_dep_count = 8
AND web_page.wp_char_count BETWEEN 5000 AND 5200) at1,
(SELECT Count(*) pmc
FROM web_sales,
household_demographics,
time_dim,
web_page
WHERE ws_sold_time_sk = time_dim.t_time_sk
AND ws_ship_hdemo_sk = household_demographics.hd_demo_sk
AND ws_web_page_sk = web_page.wp_web_page_sk
AND time_dim.t_hour BETWEEN 20 AND 20 + 1
AND household_demographics.hd_dep_count = 8
AND web_page.wp_char_count BETWEEN 5000 AND 5200) pt
ORDER BY am_pm_ratio
LIMIT 100;

-- query 91
SELECT cc_call_center_id call_center,
cc_name call_center_name,
cc_manager manager,
Sum(cr_net_loss) returns_loss
FROM call_center,
catalog_returns,
date_dim,
customer,
customer_address,
customer_demographics,
household_demographics
WHERE cr_call_center_sk = cc_call_center_sk
AND cr_returned_date_sk = d_date_sk
AND cr_returning_customer_sk = c_customer_sk
AND cd_demo_sk = c_current_cdemo_sk
AND hd_demo_sk = c_current_hdemo_sk
AND ca_address_sk = c_current_addr_sk
AND d_year = 1999
AND d_moy = 12
AND ( ( cd_marital_status = 'M'
AND cd_education_status = 'Unknown' )
OR ( cd_marital_status = 'W'
AND cd_education_status = 'Advanced Degree' ) )
AND hd_buy_potential LIKE 'Unknown%'
AND ca_gmt_offset = -7
GROUP BY cc_call_center_id,
cc_name,
cc_manager,
cd_marital_status,
cd_education_status
ORDER BY Sum(cr_net_loss) DESC;

-- query 92
SELECT
Sum(ws_ext_discount_amt) AS "Excess Discount Amount"
FROM web_sales ,
item ,
date_dim
WHERE i_manufact_id = 718
AND i_item_sk = ws_item_sk
AND d_date BETWEEN '2002-03-29' AND (
Cast('2002-03-29' AS DATE) + INTERVAL '90' day)
AND d_date_sk = ws_sold_date_sk
AND ws_ext_discount_amt >
(
SELECT 1.3 * avg(ws_ext_discount_amt)
FROM web_sales ,
date_dim
WHERE ws_item_sk = i_item_sk
AND d_date BETWEEN '2002-03-29' AND (
cast('2002-03-29' AS date) + INTERVAL '90' day)
AND d_date_sk = ws_sold_date_sk )
ORDER BY sum(ws_ext_discount_amt)
LIMIT 100;

-- query 93
SELECT ss_customer_sk,
Sum(act_sales) sumsales
FROM (SELECT ss_item_sk,
ss_ticket_number,
ss_customer_sk,
CASE
WHEN sr_return_quantity IS NOT NULL THEN
( ss_quantity - sr_return_quantity ) * ss_sales_price
ELSE ( ss_quantity * ss_sales_price )
END act_sales
FROM store_sales
LEFT OUTER JOIN store_returns
ON ( sr_item_sk = ss_item_sk
AND sr_ticket_number = ss_ticket_number ),
reason
WHERE sr_reason_sk = r_reason_sk
AND r_reason_desc = 'reason 38') t
GROUP BY ss_customer_sk
ORDER BY sumsales,
ss_customer_sk
LIMIT 100;

-- query 94
SELECT
Count(DISTINCT ws_order_number) AS "order count" ,
Sum(ws_ext_ship_cost) AS "total shipping cost" ,
Sum(ws_net_profit) AS "total net profit"
FROM web_sales ws1 ,
date_dim ,
customer_address ,
web_site
WHERE d_date BETWEEN '2000-3-01' AND (
Cast('2000-3-01' AS DATE) + INTERVAL '60' day)
AND ws1.ws_ship_date_sk = d_date_sk
AND ws1.ws_ship_addr_sk = ca_address_sk
AND ca_state = 'MT'
AND ws1.ws_web_site_sk = web_site_sk
AND web_company_name = 'pri'
AND EXISTS
(
SELECT *
FROM web_sales ws2
WHERE ws1.ws_order_number = ws2.ws_order_number
AND ws1.ws_warehouse_sk <> ws2.ws_warehouse_sk)
AND NOT EXISTS
(
SELECT *
FROM web_returns wr1
WHERE ws1.ws_order_number = wr1.wr_order_number)
ORDER BY count(DISTINCT ws_order_number)
LIMIT 100;

-- query 95
WITH ws_wh AS
(
SELECT ws1.ws_order_number,
ws1.ws_warehouse_sk wh1,
ws2.ws_warehouse_sk wh2
FROM web_sales ws1,
web_sales ws2
WHERE ws1.ws_order_number = ws2.ws_order_number
AND ws1.ws_warehouse_sk <> ws2.ws_warehouse_sk)
SELECT
Count(DISTINCT ws_order_number) AS "order count" ,
Sum(ws_ext_ship_cost) AS "total shipping cost" ,
Sum(ws_net_profit) AS "total net profit"
FROM web_sales ws1 ,
date_dim ,
customer_address ,
web_site
WHERE d_date BETWEEN '2000-4-01' AND (
Cast('2000-4-01' AS DATE) + INTERVAL '60' day)
AND ws1.ws_ship_date_sk = d_date_sk
AND ws1.ws_ship_addr_sk = ca_address_sk
AND ca_state = 'IN'
AND ws1.ws_web_site_sk = web_site_sk
AND web_company_name = 'pri'
AND ws1.ws_order_number IN
(
SELECT ws_order_number
FROM ws_wh)
AND ws1.ws_order_number IN
(
SELECT wr_order_number
FROM web_returns,
ws_wh
WHERE wr_order_number = ws_wh.ws_order_number)
ORDER BY count(DISTINCT ws_order_number)
LIMIT 100;

-- query 96
SELECT Count(*) AS "_col_0"
FROM store_sales,
household_demographics,
time_dim,
store
WHERE ss_sold_time_sk = time_dim.t_time_sk
AND ss_hdemo_sk = household_demographics.hd_demo_sk
AND ss_store_sk = s_store_sk
AND time_dim.t_hour = 15
AND time_dim.t_minute >= 30
AND household_demographics.hd_dep_count = 7
AND store.s_store_name = 'ese'
ORDER BY Count(*)
LIMIT 100;

-- query 98
SELECT i_item_id,
i_item_desc,
i_category,
i_class,
i_current_price,
Sum(ss_ext_sales_price) AS itemrevenue,
Sum(ss_ext_sales_price) * 100 / Sum(Sum(ss_ext_sales_price))
OVER (
PARTITION BY i_class) AS revenueratio
FROM store_sales,
item,
date_dim
WHERE ss_item_sk = i_item_sk
AND i_category IN ( 'Men', 'Home', 'Electronics' )
AND ss_sold_date_sk = d_date_sk
AND d_date BETWEEN CAST('2000-05-18' AS DATE) AND (
CAST('2000-05-18' AS DATE) + INTERVAL '30' DAY )
GROUP BY i_item_id,
i_item_desc,
i_category,
i_class,
i_current_price
ORDER BY i_category,
i_class,
i_item_id,
i_item_desc,
revenueratio;
